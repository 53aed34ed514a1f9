"""Deliveries of calls that are recorded already: replays, edited calls, and calls that were rejected at first."""

from msgspec.structs import replace
from sqlalchemy import Connection, select

from postern.core.access.audit import AuditEntry
from postern.core.deliveries.delivery import State
from postern.core.history.invocation import Delivery, Entry, Invocation
from postern.core.history.marks import EditedFrom
from postern.core.problems import Gone
from postern.stores.access.audit import write_note
from postern.stores.calls.claims import claim_keys
from postern.stores.calls.recorder import emit, insert_delivery, insert_invocation, keep_sample, record_all
from postern.stores.history.locking import lock_call
from postern.stores.history.marks import insert_edited
from postern.stores.sql.repository import Repository, writes
from postern.stores.sql.tables import deliveries
from postern.stores.sql.wake import DUE, announce


class Emissions(Repository):
    @writes
    def replay(
        self,
        connection: Connection,
        invocation_id: str,
        fields: dict[str, str],
        now: float,
        state: State,
        asked_by: str,
        sample: bytes | None = None,
        note: AuditEntry | None = None,
        made: tuple[Invocation, EditedFrom] | None = None,
    ) -> Delivery:
        """``made``: an invocation that was made of another one. It is no call: nothing counts it."""
        if made is not None:
            invocation, edited = made
            lock_call(connection, edited.invocation_id)
            insert_invocation(connection, invocation)
            insert_edited(connection, invocation.id, edited)
        delivery = emit(connection, invocation_id, fields, state, now, asked_by)
        if delivery is None:
            raise Gone
        announce(connection, DUE)
        if sample is not None:
            keep_sample(connection, delivery, sample, now)
        if note is not None:
            write_note(connection, replace(note, changes=note.changes | {"delivery": delivery.key}))
        return delivery

    @writes
    def admit(self, connection: Connection, entry: Entry, note: AuditEntry) -> Delivery | str | None:
        """Starts a call that was rejected once. A text names the invocation that came in its place; None: it has a delivery.
        The others of the entry are the elements of an array, each of which is a call of its own and is started in its place."""
        invocation, delivery = entry.invocation, entry.delivery
        assert delivery is not None
        lock_call(connection, invocation.id)
        if connection.scalar(select(deliveries.c.key).where(deliveries.c.key == delivery.key)) is not None:
            return None
        if first := claim_keys(connection, [entry]).get(invocation.id):
            return first
        if entry.others:
            record_all(connection, list(entry.others))
            delivery.state = "completed"
        insert_delivery(connection, delivery)
        announce(connection, DUE)
        write_note(connection, note)
        return delivery
