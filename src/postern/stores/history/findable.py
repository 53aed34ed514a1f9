"""The index of values by which calls are found, filled in batches after they were answered, not in their commits."""

from sqlalchemy import Connection, func, select, update

from postern.core.documents import read_kept
from postern.core.history.invocation import Invocation
from postern.identity import first_id_at
from postern.stores.access.audit import changed_one
from postern.stores.chores import how_far
from postern.stores.history.ahead import FINDABLE
from postern.stores.history.reading import brief, invocation_of
from postern.stores.sql.bulk import Parameters, execute_for_each
from postern.stores.sql.moments import milliseconds
from postern.stores.sql.repository import Repository, reads, writes
from postern.stores.sql.tables import call_values, chores, deliveries, invocations
from postern.stores.sql.upsert import insert_first, insert_missing

CHORE = FINDABLE


class Findable(Repository):
    @reads
    def first_behind(self, connection: Connection) -> str | None:
        """The oldest call that cannot be found by a value yet."""
        reached = how_far(connection, CHORE)
        first = select(func.min(invocations.c.id)).where(invocations.c.id > reached)
        oldest: str | None = connection.scalar(first)
        return oldest

    @reads
    def following(
        self, connection: Connection, after: str, before: float | None, limit: int, largest_body: int
    ) -> list[tuple[Invocation, dict[str, str]]]:
        """The oldest calls that cannot be found yet, with headers and small bodies, and their mapped values."""
        query = brief(largest_body).where(invocations.c.id > after)
        if before is not None:
            query = query.where(invocations.c.id < first_id_at("inv", before))
        rows = connection.execute(query.order_by(invocations.c.id).limit(limit)).all()
        if not rows:
            return []
        # They follow each other, and so do their deliveries.
        started = select(deliveries.c.invocation_id, deliveries.c.fields).where(
            deliveries.c.key >= rows[0].id + ".", deliveries.c.key < rows[-1].id + "/"
        )
        fields = {
            call_id: read_kept(kept, dict[str, str], {}) for call_id, kept in connection.execute(started)
        }
        return [(invocation_of(row), fields.get(row.id, {})) for row in rows]

    @writes
    def keep(
        self,
        connection: Connection,
        keys: dict[str, set[bytes]],
        after: str,
        now: float,
        reached: str | None = None,
    ) -> bool:
        """Writes the keys of each call. Returns False, and writes nothing, if another process has written them.
        ``reached``: where to go on, if that is not the last of the calls."""
        last = reached or max(keys)
        insert_first(connection, chores, {"name": CHORE, "at": 0, "reached": ""})
        ours = update(chores).where(chores.c.name == CHORE, chores.c.reached == after)
        back = {} if keys else {"summary": ""}
        if not changed_one(connection, ours.values(reached=last, at=milliseconds(now), **back)):
            return False
        # In the order of the table's key, so that neighbours are written together.
        rows = sorted((key, call_id) for call_id, its_keys in keys.items() for key in its_keys)
        values: list[Parameters] = [{"value": key, "invocation_id": call_id} for key, call_id in rows]
        execute_for_each(connection, insert_missing(call_values, connection.dialect.name), values)
        return True
