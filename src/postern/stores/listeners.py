"""Listeners, held by leases, and the calls that were handed to them."""

from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from postern.core.access.audit import AuditEntry
from postern.core.listeners import ENDED_KEPT, Listener, ListenerCall
from postern.stores.access.audit import changed_one, write_note
from postern.stores.history.locking import lock_call
from postern.stores.sql.moments import all_of, first_of, milliseconds, row_of
from postern.stores.sql.repository import Repository, reads, writes
from postern.stores.sql.tables import handed, listeners
from postern.stores.sql.wake import HANDED, announce

WENT_AWAY = "the listener went away before it had answered"


class ListenerStore(Repository):
    @writes
    def enter(self, connection: Connection, listener: Listener) -> None:
        connection.execute(insert(listeners).values(row_of(listener)))

    @writes
    def renew(self, connection: Connection, listener_id: str, until: float) -> bool:
        """False where it has gone. An expired one whose row is still there is renewed."""
        longer = update(listeners).where(listeners.c.id == listener_id, listeners.c.ended_by.is_(None))
        return changed_one(connection, longer.values(lease_until=milliseconds(until)))

    @reads
    def all(self, connection: Connection) -> list[Listener]:
        """The oldest first, expired ones among them."""
        return all_of(Listener, connection, select(listeners).order_by(listeners.c.id))

    @reads
    def get(self, connection: Connection, listener_id: str) -> Listener | None:
        return first_of(Listener, connection, select(listeners).where(listeners.c.id == listener_id))

    @writes
    def end(
        self, connection: Connection, listener: Listener, by: str, now: float, note: AuditEntry | None
    ) -> None:
        ended = (
            update(listeners)
            .where(listeners.c.id == listener.id, listeners.c.ended_by.is_(None))
            .values(ended_by=by, lease_until=milliseconds(now + ENDED_KEPT))
        )
        if changed_one(connection, ended):
            write_note(connection, note)
            announce(connection, HANDED, listener.id)
            _give_up(connection, [listener.id], now)

    @writes
    def sweep(self, connection: Connection, now: float) -> None:
        """Deletes expired listeners."""
        over = delete(listeners).where(listeners.c.lease_until <= milliseconds(now)).returning(listeners.c.id)
        _give_up(connection, list(connection.execute(over).scalars()), now)

    @writes
    def hand(self, connection: Connection, call: ListenerCall, note: AuditEntry) -> bool:
        """False where the listener is there no more. Raises ``Gone`` where retention has taken the call."""
        lock_call(connection, call.invocation_id)
        # Locked: whoever ends it waits, and then sees what was handed to it.
        there = listeners.c.id == call.listener_id, listeners.c.ended_by.is_(None)
        if (
            connection.execute(select(listeners.c.id).where(*there).with_for_update(read=True)).first()
            is None
        ):
            return False
        connection.execute(insert(handed).values(row_of(call)))
        announce(connection, HANDED, call.listener_id)
        write_note(connection, note)
        return True

    async def under_way(self, listener_id: str) -> list[ListenerCall]:
        """Returns the calls that it was given and has not answered, the oldest first."""
        mine = handed.c.listener_id == listener_id, handed.c.ended_at.is_(None)
        return await self._handed(select(handed).where(*mine).order_by(handed.c.id))

    async def one_handed(self, handed_id: str) -> ListenerCall | None:
        calls = await self._handed(select(handed).where(handed.c.id == handed_id))
        return calls[0] if calls else None

    async def of_call(self, invocation_id: str) -> list[ListenerCall]:
        return (await self.of_calls(invocation_id, invocation_id)).get(invocation_id, [])

    async def of_calls(self, oldest: str, newest: str) -> dict[str, list[ListenerCall]]:
        """Returns the calls in this range of ids that were ever handed to a listener."""
        of_them = select(handed).where(handed.c.invocation_id.between(oldest, newest))
        by_call: dict[str, list[ListenerCall]] = {}
        for call in await self._handed(of_them.order_by(handed.c.id)):
            by_call.setdefault(call.invocation_id, []).append(call)
        return by_call

    @reads
    def _handed(self, connection: Connection, statement: Any) -> list[ListenerCall]:
        return all_of(ListenerCall, connection, statement)

    @writes
    def ended(self, connection: Connection, call: ListenerCall) -> ListenerCall:
        """Writes down how its program answered, unless that is known already, and returns what is known."""
        assert call.ended_at is not None
        open_ = update(handed).where(handed.c.id == call.id, handed.c.ended_at.is_(None))
        connection.execute(
            open_.values(
                ended_at=milliseconds(call.ended_at),
                status=call.status,
                duration_us=call.duration_us,
                error=call.error,
            )
        )
        return first_of(ListenerCall, connection, select(handed).where(handed.c.id == call.id)) or call


def _give_up(connection: Connection, listener_ids: list[str], now: float) -> None:
    """Marks as failed what these listeners had not answered."""
    open_ = update(handed).where(handed.c.listener_id.in_(listener_ids), handed.c.ended_at.is_(None))
    connection.execute(open_.values(ended_at=milliseconds(now), error=WENT_AWAY))
