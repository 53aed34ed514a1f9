"""The bin: what is deleted stays for a while, and can come back as it was."""

from sqlalchemy import Connection, and_, delete, func, or_, select, update

from postern.core.access.audit import AuditEntry
from postern.core.problems import Refused
from postern.core.webhooks.stored import BinnedWebhook, UnreadableWebhook
from postern.stores import schedules
from postern.stores.access.audit import changed_one, write_note, write_notes
from postern.stores.sql import tables
from postern.stores.sql.database import Database
from postern.stores.sql.moments import all_of, milliseconds
from postern.stores.sql.repository import Repository, reads, writes
from postern.stores.sql.tables import UNUSUAL_DELIVERIES, deliveries, samples, secrets, webhooks
from postern.stores.sql.writer import Writer
from postern.stores.webhooks.versions import next_epoch, versions
from postern.stores.webhooks.webhooks import WebhookStore

NOTHING_LEFT = "{}"
"""The settings of a webhook that is deleted for good."""

IN_THE_BIN = and_(webhooks.c.deleted_at.is_not(None), webhooks.c.document != NOTHING_LEFT)


class BinStore(Repository):
    def __init__(self, database: Database, writer: Writer, kept: WebhookStore) -> None:
        super().__init__(database, writer)
        self._webhooks = kept

    async def delete(self, note: AuditEntry, now: float) -> bool:
        """The subject of the note."""
        return (await self.delete_each([note], now))[0]

    @writes
    def delete_each(self, connection: Connection, notes: list[AuditEntry], now: float) -> list[bool]:
        """Puts the subjects of the notes into the bin. False for each that was not there any more."""
        there = versions(connection, [note.subject for note in notes])
        doing = [note for note in notes if note.subject in there]
        if doing:
            _delete_all(connection, list(there), now)
            write_notes(connection, doing)
        return [note.subject in there for note in notes]

    @writes
    def restore(
        self, connection: Connection, webhook_id: str, now: float, note: AuditEntry | None = None
    ) -> bool:
        """Takes a webhook out of the bin, as it was."""
        changed = connection.execute(
            update(webhooks)
            .where(webhooks.c.id == webhook_id, IN_THE_BIN)
            .values(
                deleted_at=None,
                updated_at=milliseconds(now),
                version=webhooks.c.version + 1,
                epoch=next_epoch(connection),
            )
            .returning(webhooks)
        ).all()
        if not changed:
            return False
        (restored,) = self._webhooks.stored_all(connection, changed)
        if isinstance(restored, UnreadableWebhook):
            raise Refused("temporarily_unavailable", restored.explanation)
        schedules.follow(connection, restored, touched=False)
        write_note(connection, note)
        return True

    @writes
    def purge(self, connection: Connection, webhook_id: str, note: AuditEntry | None = None) -> bool:
        """Deletes a webhook in the bin for good. Its row stays: its short code is never given out again."""
        purging = update(webhooks).where(webhooks.c.id == webhook_id, IN_THE_BIN)
        if not changed_one(connection, purging.values(document=NOTHING_LEFT, path=None, enabled=False)):
            return False
        # Nobody can release or drop them any more, and what is held is never taken by retention.
        held = update(deliveries).where(
            deliveries.c.state == "held", UNUSUAL_DELIVERIES, deliveries.c.webhook_id == webhook_id
        )
        connection.execute(held.values(state="dropped"))
        for table in (secrets, samples, tables.schedules):
            connection.execute(delete(table).where(table.c.webhook_id == webhook_id))
        write_note(connection, note)
        return True

    @reads
    def page(
        self,
        connection: Connection,
        before: float | None = None,
        webhook_id: str | None = None,
        after: str | None = None,
        limit: int | None = None,
    ) -> list[BinnedWebhook]:
        """The last deleted first: all, those deleted before a time, one webhook, or the next ones after a webhook."""
        among = select(
            webhooks.c.id, webhooks.c.short_code, webhooks.c.path, webhooks.c.name, webhooks.c.deleted_at
        )
        among = among.where(IN_THE_BIN).order_by(webhooks.c.deleted_at.desc(), webhooks.c.id).limit(limit)
        if before is not None:
            among = among.where(webhooks.c.deleted_at < milliseconds(before))
        if webhook_id is not None:
            among = among.where(webhooks.c.id == webhook_id)
        if after is not None:
            at = select(webhooks.c.deleted_at).where(webhooks.c.id == after).scalar_subquery()
            same = and_(webhooks.c.deleted_at == at, webhooks.c.id > after)
            among = among.where(or_(webhooks.c.deleted_at < at, same))
        return all_of(BinnedWebhook, connection, among)

    @reads
    def count(self, connection: Connection) -> int:
        counting = select(func.count()).select_from(webhooks).where(IN_THE_BIN)
        return int(connection.execute(counting).scalar_one())


def _delete_all(connection: Connection, webhook_ids: list[str], now: float) -> None:
    moment = milliseconds(now)
    deleting = update(webhooks).where(webhooks.c.id.in_(webhook_ids))
    connection.execute(deleting.values(deleted_at=moment, updated_at=moment, epoch=next_epoch(connection)))
    # A run that is under way loses its lease, and with it what it would have started.
    theirs = update(tables.schedules).where(tables.schedules.c.webhook_id.in_(webhook_ids))
    connection.execute(theirs.values(next_run_at=None, lease_until=None))
