"""One look through the history: the whole of it where an index leads to the calls, a bounded stretch otherwise."""

from collections.abc import Callable
from time import thread_time
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Connection, Select, select

from postern.core.history.invocation import HistoryFilter
from postern.core.history.part import ContentPart, is_in_payload, looks_into_calls, path_of
from postern.stores.history.filtering import conditions_of, keys_of
from postern.stores.sql.database import Database
from postern.stores.sql.tables import call_values, invocations

LONGEST_LOOK = 5_000
"""How many calls one page looks through if no index helps (text search). The next page goes on from there."""

SEARCHED_BYTES = 32 * 1024 * 1024
"""Bytes of bodies in one look of a search."""

LONGEST_READING = 0.02
"""Seconds of processor time that one look spends on reading bodies: callers wait for the same interpreter."""

READ_AT_ONCE = 100
"""Bodies between two checks of the time spent."""

T = TypeVar("T")


async def look_up(database: Database, criteria: HistoryFilter, query: Callable[[Connection], T]) -> T:
    """Runs the query as a search if it reads the calls themselves: others do not wait for it, and it is ended some time."""
    return await (database.search(query) if looks_into_calls(criteria) else database.read(query))


class Look:
    """A query for the newest calls that meet a filter."""

    def __init__(
        self,
        connection: Connection,
        criteria: HistoryFilter,
        most: int,
        before: str | None = None,
        whole_key: bool = False,
        since: str | None = None,
    ) -> None:
        """``whole_key``: if all of the calls are under one key of an index, those under it are gone through to the last."""
        self._key = next(iter(keys_of(criteria)), None)
        self._conditions, indexed = conditions_of(connection, criteria)
        if before is not None:
            self._conditions.append(invocations.c.id < before)
        if since is not None:
            self._conditions.append(invocations.c.id >= since)
        in_payload = path_of(criteria)
        self.horizon: str | None = None
        """The last call that was looked at: the next page begins after it. None where there is nothing after it."""
        if not indexed or in_payload is not None or (self._key is not None and not whole_key):
            self.horizon = last_looked_at(connection, criteria, self._along(criteria, before, since))
        if self.horizon is not None:
            self._conditions.append(invocations.c.id >= self.horizon)
        self.read: list[str] | None = None
        """The calls that have it in their payload, where that is asked for."""
        if in_payload is not None:
            self.read, stopped_at = self._with_value(connection, in_payload, most)
            self.horizon = stopped_at or self.horizon
            self._conditions.append(invocations.c.id.in_(self.read))

    def calls(self, *columns: ColumnElement[Any]) -> Select[Any]:
        query = select(*columns).where(*self._conditions)
        if self._key is None:
            return query
        query = query.join(call_values, call_values.c.invocation_id == invocations.c.id)
        return query.where(call_values.c.value == self._key)

    def newest_first(self, *columns: ColumnElement[Any]) -> Select[Any]:
        # Along the key's own order: the page's rows are the first that are met.
        order = invocations.c.id if self._key is None else call_values.c.invocation_id
        return self.calls(*columns).order_by(order.desc())

    def _along(self, criteria: HistoryFilter, before: str | None, since: str | None) -> Select[str]:
        """The ids that are gone through, in that order."""
        if self._key is not None:
            entry = call_values.c.invocation_id
            query = select(entry.label("id")).join(invocations, invocations.c.id == entry)
            query = query.where(call_values.c.value == self._key)
        else:
            entry = invocations.c.id
            query = select(entry)
            if criteria.webhook_id is not None:
                query = query.where(invocations.c.webhook_id == criteria.webhook_id)
        if before is not None:
            query = query.where(entry < before)
        if since is not None:
            query = query.where(entry >= since)
        return query.order_by(entry.desc())

    def _with_value(
        self, connection: Connection, part: ContentPart, most: int
    ) -> tuple[list[str], str | None]:
        """The newest calls with it in their payload, each body read, and the one after which the time for that was over."""
        columns = (invocations.c.id, invocations.c.headers, invocations.c.body)
        newest_first = select(*columns).where(*self._conditions).order_by(invocations.c.id.desc())
        ids: list[str] = []
        began = thread_time()
        with connection.execute(newest_first, execution_options={"yield_per": READ_AT_ONCE}) as read:
            for rows in read.partitions():
                for invocation_id, headers, body in rows:
                    if is_in_payload(part, headers, body or b""):
                        ids.append(invocation_id)
                        if len(ids) == most:
                            return ids, None
                if thread_time() - began > LONGEST_READING:
                    return ids, invocation_id
        return ids, None


def last_looked_at(connection: Connection, criteria: HistoryFilter, along: Select[str]) -> str | None:
    """The id at which one look ends; None if it comes to the end. The bodies' sizes bound a search."""
    if not criteria.search and path_of(criteria) is None:
        return connection.scalar(along.offset(LONGEST_LOOK - 1).limit(1))
    total = 0
    rows = connection.execute(along.add_columns(invocations.c.body_size).limit(LONGEST_LOOK)).all()
    for number, row in enumerate(rows, 1):
        total += row.body_size
        if total > SEARCHED_BYTES or number == LONGEST_LOOK:
            return str(row.id)
    return None
