"""Reading the counts per minute. What is read grows with the minutes asked for, never with the calls that were made in them."""

from collections import OrderedDict
from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from postern.core.volume import Volume
from postern.stores.database import Database
from postern.stores.tables import LATENCY_BOUNDS_MS, volumes, webhooks

_WITHIN = [volumes.c[f"within_{bound}"] for bound in LATENCY_BOUNDS_MS]


SETTLED_AFTER = 5
"""Minutes after which nothing is counted into a bucket any more: what was read then is remembered."""
MOST_REMEMBERED = 200


@dataclass(slots=True)
class _Remembered:
    since: int
    until: int
    buckets: dict[int, Volume]


class Volumes:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._remembered: OrderedDict[tuple[str | None, int], _Remembered] = OrderedDict()

    async def buckets(self, webhook_id: str | None, since: int, until: int, step: int) -> dict[int, Volume]:
        """By the bucket's first minute; buckets without a call are not there. None as webhook: all of them.

        The past does not change: of a month that was read before, only its last buckets are read again.
        """
        past = self._remembered.get((webhook_id, step))
        if past is None or past.since > since or past.until <= since:
            past = _Remembered(since, since, {})
        fresh = await self._read(webhook_id, past.until, until, step)
        found = {first: volume for first, volume in past.buckets.items() if first >= since} | fresh
        settled = (until - SETTLED_AFTER) - (until - SETTLED_AFTER) % step
        kept = {first: volume for first, volume in found.items() if first < settled}
        self._remembered[webhook_id, step] = _Remembered(since, max(since, settled), kept)
        self._remembered.move_to_end((webhook_id, step))
        if len(self._remembered) > MOST_REMEMBERED:
            self._remembered.popitem(last=False)
        return found

    async def _read(self, webhook_id: str | None, since: int, until: int, step: int) -> dict[int, Volume]:
        def query(connection: Connection) -> dict[int, Volume]:
            bucket = volumes.c.minute - volumes.c.minute % step
            statement = select(bucket, volumes.c.code, func.sum(volumes.c.calls), *(func.sum(column) for column in _WITHIN))
            # The key begins with the webhook: naming each makes it as many short ranges instead of one look at everything.
            wanted = volumes.c.webhook_id == webhook_id if webhook_id else volumes.c.webhook_id.in_(select(webhooks.c.id))
            statement = statement.where(wanted, volumes.c.minute >= since, volumes.c.minute < until).group_by(bucket, volumes.c.code)
            found: dict[int, Volume] = {}
            for first, code, calls, *within in connection.execute(statement):
                found.setdefault(int(first), Volume()).add(code, int(calls), [int(count) for count in within])
            return found

        return await self._database.read(query)

    async def calls(self, webhook_ids: list[str], since: int, step: int) -> dict[str, dict[int, dict[str, int]]]:
        """By webhook, by the bucket's first minute, by code: how many calls."""

        def query(connection: Connection) -> dict[str, dict[int, dict[str, int]]]:
            bucket = volumes.c.minute - volumes.c.minute % step
            statement = select(volumes.c.webhook_id, bucket, volumes.c.code, func.sum(volumes.c.calls))
            statement = statement.where(volumes.c.webhook_id.in_(webhook_ids), volumes.c.minute >= since)
            found: dict[str, dict[int, dict[str, int]]] = {webhook_id: {} for webhook_id in webhook_ids}
            for webhook_id, first, code, calls in connection.execute(statement.group_by(volumes.c.webhook_id, bucket, volumes.c.code)):
                found[webhook_id].setdefault(int(first), {})[code] = int(calls)
            return found

        return await self._database.read(query)
