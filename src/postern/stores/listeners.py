"""Listeners, held by leases, and the calls that were handed to them."""

from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection, delete, select, update

from postern.core.access.audit import AuditEntry
from postern.core.deliveries.delivery import End
from postern.core.listeners import ENDED_KEPT, AlreadyAnswered, GoneListener, Handed, Listener
from postern.stores.access.audit import changed_one, write_note
from postern.stores.calls.recorder import hand_over, is_there
from postern.stores.history.endings import write_ends
from postern.stores.history.locking import lock_call
from postern.stores.sql.moments import all_of, first_of, milliseconds, row_of
from postern.stores.sql.repository import Repository, reads, writes
from postern.stores.sql.tables import handed, listeners
from postern.stores.sql.upsert import insert_first
from postern.stores.sql.wake import HANDED, LISTENERS, announce

WENT_AWAY = "the listener went away before it had answered"

NoteOf = Callable[[Listener], AuditEntry | None]
"""Makes the audit note of a listener whose time is over."""


class ListenerStore(Repository):
    @writes
    def enter(self, connection: Connection, listener: Listener, note: AuditEntry | None) -> None:
        """Raises ``AlreadyAnswered`` where another one has the webhook's lease. The insert decides."""
        while not insert_first(connection, listeners, row_of(listener), one_of=listeners.c.answers):
            held = select(listeners).where(listeners.c.answers == listener.answers)
            if (holder := first_of(Listener, connection, held)) is not None:
                raise AlreadyAnswered(holder)
            # Another process has just put the holder out: nothing stands in the way any more.
        write_note(connection, note)
        announce(connection, LISTENERS)

    @writes
    def renew(self, connection: Connection, listener_id: str, until: float) -> bool:
        """False where it is there no more. One whose time is over and whose row is still there goes on."""
        longer = update(listeners).where(listeners.c.id == listener_id, listeners.c.ended_by.is_(None))
        return changed_one(connection, longer.values(lease_until=milliseconds(until)))

    @reads
    def all(self, connection: Connection) -> list[Listener]:
        """The oldest first, those whose time is over among them."""
        return all_of(Listener, connection, select(listeners).order_by(listeners.c.id))

    @reads
    def get(self, connection: Connection, listener_id: str) -> Listener | None:
        return first_of(Listener, connection, select(listeners).where(listeners.c.id == listener_id))

    @writes
    def end(
        self, connection: Connection, listener: Listener, by: str, now: float, note: AuditEntry | None
    ) -> GoneListener | None:
        """Returns None if it had gone before."""
        ended = (
            update(listeners)
            .where(listeners.c.id == listener.id, listeners.c.ended_by.is_(None))
            .values(ended_by=by, answers=None, lease_until=milliseconds(now + ENDED_KEPT))
        )
        if not changed_one(connection, ended):
            return None
        write_note(connection, note)
        announce(connection, LISTENERS)
        announce(connection, HANDED, listener.id)
        return GoneListener(listener, _give_up(connection, listener.id, now))

    @writes
    def sweep(self, connection: Connection, now: float, note_of: NoteOf) -> list[GoneListener]:
        """Deletes listeners whose time is over."""
        over = delete(listeners).where(listeners.c.lease_until <= milliseconds(now)).returning(listeners)
        gone = []
        for listener in all_of(Listener, connection, over):
            write_note(connection, note_of(listener))
            gone.append(GoneListener(listener, _give_up(connection, listener.id, now)))
        if gone:
            announce(connection, LISTENERS)
        return gone

    @writes
    def hand(self, connection: Connection, call: Handed, note: AuditEntry) -> bool:
        """False where the listener is there no more. Raises ``Gone`` where retention has taken the call."""
        lock_call(connection, call.invocation_id)
        if not is_there(connection, call.listener_id):
            return False
        hand_over(connection, call)
        write_note(connection, note)
        return True

    async def under_way(self, listener_id: str) -> list[Handed]:
        """Returns the calls that it was given and has not answered, the oldest first."""
        mine = handed.c.listener_id == listener_id, handed.c.ended_at.is_(None)
        return await self._handed(select(handed).where(*mine).order_by(handed.c.id))

    async def one_handed(self, handed_id: str) -> Handed | None:
        found = await self._handed(select(handed).where(handed.c.id == handed_id))
        return found[0] if found else None

    async def of_call(self, invocation_id: str) -> list[Handed]:
        return (await self.of_calls(invocation_id, invocation_id)).get(invocation_id, [])

    async def of_calls(self, oldest: str, newest: str) -> dict[str, list[Handed]]:
        """Returns the calls in this range of ids that were ever handed to a listener."""
        of_them = select(handed).where(handed.c.invocation_id.between(oldest, newest))
        found: dict[str, list[Handed]] = {}
        for one in await self._handed(of_them.order_by(handed.c.id)):
            found.setdefault(one.invocation_id, []).append(one)
        return found

    @reads
    def _handed(self, connection: Connection, statement: Any) -> list[Handed]:
        return all_of(Handed, connection, statement)

    @writes
    def ended(self, connection: Connection, call: Handed) -> bool:
        """Writes down how it went, and that its delivery, if any, has ended so. False if that is known already."""
        assert call.ended_at is not None
        now = call.ended_at
        open_ = update(handed).where(handed.c.id == call.id, handed.c.ended_at.is_(None))
        values = {
            "ended_at": milliseconds(now),
            "status": call.status,
            "duration_us": call.duration_us,
            "error": call.error,
        }
        if not changed_one(connection, open_.values(values)):
            return False
        if call.delivery_key is not None:
            end = End("failed" if call.error else "completed", now, call.error)
            write_ends(connection, {call.delivery_key: end}, now)
        return True


def _give_up(connection: Connection, listener_id: str, now: float) -> tuple[str, ...]:
    """Marks as failed what the listener had not answered."""
    open_ = update(handed).where(handed.c.listener_id == listener_id, handed.c.ended_at.is_(None))
    over = open_.values(ended_at=milliseconds(now), error=WENT_AWAY).returning(handed.c.delivery_key)
    keys = tuple(key for key in connection.execute(over).scalars() if key is not None)
    if keys:
        write_ends(connection, {key: End("failed", now, WENT_AWAY) for key in keys}, now)
    return keys
