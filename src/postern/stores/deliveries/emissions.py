"""Deliveries of calls that are recorded already: replays, edited calls, and calls that were rejected at first."""

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace
from sqlalchemy import Connection, select

from postern.core.access.audit import AuditEntry
from postern.core.deliveries.delivery import StartAgain
from postern.core.history.invocation import Delivery, Entry, Invocation
from postern.core.history.marks import EditedFrom
from postern.core.problems import Gone, Refused
from postern.stores.access.audit import write_note
from postern.stores.calls.claims import claim_keys, holders_of, stored_key
from postern.stores.calls.recorder import emit, insert_delivery, insert_invocation, keep_sample, record_all
from postern.stores.history.locking import lock_call
from postern.stores.history.marks import insert_edited
from postern.stores.sql.moments import milliseconds
from postern.stores.sql.repository import Repository, reads, writes
from postern.stores.sql.tables import deliveries
from postern.stores.sql.wake import DUE, announce


class Attempt(msgspec.Struct, frozen=True):
    """The call was another attempt at an event that this invocation brought."""

    of: str


class Emissions(Repository):
    @writes
    def replay(
        self,
        connection: Connection,
        start: StartAgain,
        now: float,
        asked_by: str,
        sample: bytes | None = None,
        note: AuditEntry | None = None,
        made: tuple[Invocation, EditedFrom] | None = None,
        expected: int | None = None,
    ) -> Delivery:
        """``made``: an invocation that was made of another one. It is no call: nothing counts it. ``expected``: the emission that
        this is to be; refused where another start came first."""
        if made is not None:
            invocation, edited = made
            lock_call(connection, edited.invocation_id)
            insert_invocation(connection, invocation)
            insert_edited(connection, invocation.id, edited)
        delivery = emit(connection, start, now, asked_by)
        if delivery is None:
            raise Gone
        if expected not in (None, delivery.emission):
            started = "started" if expected == 1 else "started again"
            raise Refused("version_conflict", f"this call was {started} meanwhile")
        announce(connection, DUE)
        if sample is not None:
            keep_sample(connection, delivery, sample, now)
        if note is not None:
            write_note(connection, replace(note, changes=note.changes | {"delivery": delivery.key}))
        return delivery

    @reads
    def came_before(
        self, connection: Connection, calls: Sequence[tuple[Invocation, Sequence[bytes]]]
    ) -> dict[str, str]:
        """Returns one webhook's calls that share a key with another invocation, and that one."""
        stored = [(call, [stored_key(call.webhook_id, key) for key in keys]) for call, keys in calls]
        held = holders_of(connection, [key for _, keys in stored for key in keys])
        earlier: dict[str, str] = {}
        for call, keys in stored:
            for holder, until in (held[key] for key in keys if key in held):
                if holder != call.id and until > milliseconds(call.received_at):
                    earlier.setdefault(call.id, holder)
        return earlier

    @writes
    def admit(
        self, connection: Connection, entry: Entry, event: Sequence[bytes], until: float, note: AuditEntry
    ) -> Delivery | Attempt | str | None:
        """Starts a call that was rejected once. A text names the invocation that came in its place; None: it has a delivery.
        ``event``: keys of the event that it brought. Another call with one of them was another attempt at it, and they are kept until
        then, also where the webhook has no duplicate protection. The others of the entry are the elements of an array, each of
        which is a call of its own and is started in its place."""
        invocation, delivery = entry.invocation, entry.delivery
        assert delivery is not None
        lock_call(connection, invocation.id)
        if connection.scalar(select(deliveries.c.key).where(deliveries.c.key == delivery.key)) is not None:
            return None
        claims = [replace(entry, duplicate_key=key, duplicate_until=until, others=()) for key in event]
        if first := claim_keys(connection, claims).get(invocation.id):
            return Attempt(first)
        if first := claim_keys(connection, [entry]).get(invocation.id):
            return first
        if entry.others:
            record_all(connection, list(entry.others), counted=False)  # the array was counted when it came
            for element in entry.others:
                insert_edited(connection, element.invocation.id, EditedFrom(invocation.id, note.actor, []))
            delivery.state = "completed"
        insert_delivery(connection, delivery)
        announce(connection, DUE)
        write_note(connection, note)
        return delivery
