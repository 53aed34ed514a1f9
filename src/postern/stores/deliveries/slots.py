"""The answer for a waiting caller: the first one in time, or a problem. The delivery's row decides."""

import asyncio

import msgspec
from sqlalchemy import Connection, Executable, bindparam, update

from postern.core.answer import WorkflowResponse
from postern.stores.deliveries.deliveries import key_of
from postern.stores.sql.bulk import Parameters, execute_for_each
from postern.stores.sql.moments import milliseconds
from postern.stores.sql.repository import Repository
from postern.stores.sql.tables import deliveries
from postern.stores.sql.wake import ANSWER, announce


class Slots(Repository):
    def respond(
        self, key: str, response: WorkflowResponse, now: float, awaited_here: bool = False
    ) -> "asyncio.Future[bool]":
        """The first answer before the deadline wins. A late one is kept beside it. ``awaited_here``: the caller waits in this
        process, which closes the row when the time is over, whatever the time of day has become."""

        return self._writer.share(
            _respond_all,
            {
                "of": key,
                "status": response.status,
                "headers": msgspec.json.encode(response.headers),
                "body": response.body,
                "at": milliseconds(now),
                "ends_after": milliseconds(0.0 if awaited_here else now),
                "awaited_here": awaited_here,
            },
        )

    async def close_slot(self, key: str, answer_code: str) -> bool:
        """Say what the caller heard instead of an answer. False when an answer came first after all."""
        return await self._writer.share(_close_all, {"of": key, "code": answer_code})


_OPEN = update(deliveries).where(deliveries.c.key == bindparam("of"), deliveries.c.responded_at.is_(None))
_RESPONSE: Parameters = {
    "response_status": bindparam("status"),
    "response_headers": bindparam("headers"),
    "response_body": bindparam("body"),
    "responded_at": bindparam("at"),
}
_RESPOND = _OPEN.where(
    deliveries.c.deadline > bindparam("ends_after"), deliveries.c.answer_code == ""
).values({**_RESPONSE, "answer_code": "accepted"})
_RESPOND_LATE = _OPEN.where(deliveries.c.deadline.is_not(None)).values(_RESPONSE)
_CLOSE = (
    update(deliveries)
    .where(deliveries.c.key == bindparam("of"), deliveries.c.answer_code == "")
    .values(answer_code=bindparam("code"))
)


def _respond_all(connection: Connection, responses: list[Parameters]) -> list[bool]:
    in_time = _changed(connection, _RESPOND, responses)
    late = [response for response, first in zip(responses, in_time, strict=True) if not first]
    execute_for_each(connection, _RESPOND_LATE, sorted(late, key=key_of))
    for response, first in zip(responses, in_time, strict=True):
        if first and not response["awaited_here"]:
            announce(connection, ANSWER, response["of"])
    return in_time


def _close_all(connection: Connection, slots: list[Parameters]) -> list[bool]:
    return _changed(connection, _CLOSE, slots)


def _changed(connection: Connection, statement: Executable, items: list[Parameters]) -> list[bool]:
    """Whether each was what changed its delivery. The first of two for the same delivery comes first here, too."""
    places = sorted(range(len(items)), key=lambda place: key_of(items[place]))
    counts = execute_for_each(connection, statement, [items[place] for place in places])
    changed = {place: count == 1 for place, count in zip(places, counts, strict=True)}
    return [changed[place] for place in range(len(items))]
