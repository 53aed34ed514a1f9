"""Webhooks and their secrets: configuration, kept whole and versioned."""

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import islice
from typing import Any

import msgspec
from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    delete,
    false,
    func,
    insert,
    or_,
    select,
    update,
)
from sqlalchemy.exc import IntegrityError

from postern.core.access.audit import AuditEntry
from postern.core.problems import Refused, invalid
from postern.core.webhooks import announced
from postern.core.webhooks.bounds import has_path
from postern.core.webhooks.settings import UnreadableSettings, read_document, write_document
from postern.core.webhooks.stored import (
    ChangedWebhooks,
    StoredSecret,
    StoredWebhook,
    Tally,
    UnreadableWebhook,
)
from postern.identity import new_id
from postern.observe.logs import log
from postern.stores import schedules
from postern.stores.access.audit import changed_one, write_note, write_notes
from postern.stores.secrets import keys
from postern.stores.secrets.vault import Vault, VaultError, envelopes_of
from postern.stores.sql.bulk import Parameters
from postern.stores.sql.database import Database
from postern.stores.sql.moments import milliseconds, seconds, value_of
from postern.stores.sql.repository import Repository, reads, writes
from postern.stores.sql.tables import ALIVE, epochs, samples, secrets, tallies, webhooks
from postern.stores.sql.writer import Writer
from postern.stores.webhooks.versions import next_epoch, versions

Stored = StoredWebhook | UnreadableWebhook

SecretChanges = dict[str, bytes | None]
"""New values by field, or None to remove one. A field that is not named stays."""


class WebhookStore(Repository):
    def __init__(self, database: Database, writer: Writer, vault: Vault) -> None:
        super().__init__(database, writer)
        self._vault = vault

    async def create(
        self,
        webhook: StoredWebhook,
        changes: SecretChanges,
        note: AuditEntry | None = None,
        *,
        known: set[str] | None = None,
    ) -> bool:
        """``known``: the ids of those that may have its name. False where another one has it, and nothing is made then."""

        def job(connection: Connection) -> bool:
            row = _row(webhook, next_epoch(connection))  # from here on nobody else makes one
            _check_path(connection, webhook)
            if known is not None:
                same = select(webhooks.c.id).where(webhooks.c.name == webhook.name, ALIVE)
                if not known.issuperset(connection.execute(same).scalars()):
                    return False
            connection.execute(
                insert(webhooks).values(
                    id=webhook.id,
                    short_code=webhook.short_code,
                    created_at=milliseconds(webhook.created_at),
                    **row,
                )
            )
            self._change_secrets(connection, webhook.id, changes, webhook.created_at)
            schedules.follow(connection, webhook, touched=False)
            write_note(connection, note)
            return True

        try:
            return await self._writer.write(job)
        except IntegrityError:
            raise Refused("conflict", "a webhook has, or once had, this id or this URL") from None

    @writes
    def update(
        self,
        connection: Connection,
        webhook: StoredWebhook,
        seen_version: int,
        changes: SecretChanges,
        note: AuditEntry | None = None,
        promote: bool = False,
    ) -> bool:
        """False when somebody else was faster: nothing is changed then."""
        unchanged = webhooks.c.id == webhook.id, webhooks.c.version == seen_version, ALIVE
        values = _row(webhook, next_epoch(connection))
        _check_path(connection, webhook)
        if not changed_one(connection, update(webhooks).where(*unchanged).values(values)):
            return False
        if promote:
            self._promote(connection, webhook.id)
        self._change_secrets(connection, webhook.id, changes, webhook.updated_at)
        schedules.follow(connection, webhook, touched=any(field.startswith("header:") for field in changes))
        write_note(connection, note)
        return True

    @writes
    def update_each(
        self, connection: Connection, changed: list[tuple[StoredWebhook, AuditEntry]]
    ) -> list[bool]:
        """Saves each as its next version, secrets unchanged; False for each where somebody else was faster. In one
        transaction: not too many at once, for calls wait behind it."""
        there = versions(connection, [webhook.id for webhook, _ in changed])
        done = [there.get(webhook.id) == webhook.version - 1 for webhook, _ in changed]
        doing = [pair for pair, is_done in zip(changed, done, strict=True) if is_done]
        if doing:
            epoch = next_epoch(connection)
            for webhook, _ in doing:
                of_it = update(webhooks).where(webhooks.c.id == webhook.id)
                connection.execute(of_it.values(_row(webhook, epoch)))
                if webhook.settings.schedule is not None:
                    schedules.follow(connection, webhook, touched=False)
            write_notes(connection, [note for _, note in doing])
        return done

    async def get(self, webhook_id: str) -> Stored | None:
        return (await self.some([webhook_id])).get(webhook_id)

    @reads
    def names(self, connection: Connection, among: list[str]) -> list[tuple[str, str, bool]]:
        """Id, name, and whether it is deleted."""
        query = select(webhooks.c.id, webhooks.c.name, webhooks.c.deleted_at.is_not(None))
        query = query.where(webhooks.c.id.in_(among))
        return [(row[0], row[1], bool(row[2])) for row in connection.execute(query)]

    @reads
    def taken(self, connection: Connection, ids: list[str], short_codes: list[str]) -> set[str]:
        """Returns those of the ids and short codes that a webhook has, also one in the bin."""
        query = select(webhooks.c.id, webhooks.c.short_code)
        query = query.where(webhooks.c.id.in_(ids) | webhooks.c.short_code.in_(short_codes))
        return {value for row in connection.execute(query) for value in row}

    @reads
    def owners(self, connection: Connection, paths: list[str]) -> dict[str, tuple[str, str]]:
        """Id and name of the webhooks with these paths, also of those in the bin."""
        return _owners(connection, paths)

    @reads
    def deleted_names(
        self, connection: Connection, is_meant: Callable[[str], bool], limit: int
    ) -> dict[str, str]:
        """Returns the names of deleted webhooks by id: the newest for which ``is_meant`` is true. Compared here,
        because SQLite and Postgres make letters small in different ways."""
        query = select(webhooks.c.id, webhooks.c.name).where(webhooks.c.deleted_at.is_not(None))
        query = query.order_by(webhooks.c.id.desc())
        meant = ((row[0], row[1]) for row in connection.execute(query) if is_meant(row[1]))
        return dict(islice(meant, limit))

    @reads
    def some(self, connection: Connection, webhook_ids: list[str]) -> dict[str, Stored]:
        """Returns those that are there, by id."""
        rows = list(_of(connection, select(webhooks).where(ALIVE), webhooks.c.id, webhook_ids))
        return {webhook.id: webhook for webhook in self.stored_all(connection, rows)}

    @reads
    def page(self, connection: Connection, limit: int, before: str | None = None) -> list[Stored]:
        statement = select(webhooks).where(ALIVE).order_by(webhooks.c.id.desc()).limit(limit)
        if before:
            statement = statement.where(webhooks.c.id < before)
        return self.stored_all(connection, connection.execute(statement).all())

    @reads
    def changed_since(self, connection: Connection, epoch: int) -> ChangedWebhooks:
        now = connection.execute(select(epochs.c.epoch)).scalar_one_or_none() or 0
        changed = ChangedWebhooks(now)
        if now == epoch:
            return changed
        rows = connection.execute(select(webhooks).where(webhooks.c.epoch > epoch)).all()
        changed.deleted.extend(row.id for row in rows if row.deleted_at is not None)
        for webhook in self.stored_all(connection, [row for row in rows if row.deleted_at is None]):
            if isinstance(webhook, StoredWebhook):
                changed.stored.append(webhook)
            else:
                changed.unreadable.append(webhook)
        return changed

    @reads
    def tallies(self, connection: Connection, webhook_ids: list[str]) -> dict[str, dict[str, Tally]]:
        """Returns by webhook how many calls came, and how often each secret matched, with the last time."""
        statement = select(
            tallies.c.webhook_id, tallies.c.name, func.sum(tallies.c.count), func.max(tallies.c.last_at)
        ).group_by(tallies.c.webhook_id, tallies.c.name)
        by_webhook: dict[str, dict[str, Tally]] = {webhook_id: {} for webhook_id in webhook_ids}
        for webhook_id, name, count, last_at in connection.execute(
            statement.where(tallies.c.webhook_id.in_(webhook_ids))
        ):
            by_webhook[webhook_id][name] = Tally(int(count), seconds(last_at))
        return by_webhook

    @reads
    def last_calls(self, connection: Connection) -> dict[str, float]:
        """When the last call came, by webhook."""
        last = select(tallies.c.webhook_id, func.max(tallies.c.last_at)).where(tallies.c.name == "calls")
        rows = connection.execute(last.group_by(tallies.c.webhook_id))
        return {webhook_id: seconds(last_at) for webhook_id, last_at in rows}

    @writes
    def announce(self, connection: Connection, webhook_id: str, announcement: announced.Announcement) -> bool:
        """Keeps a secret that a caller announced. Returns False if there is no room for it: it is counted then. One that
        is kept and new makes a new version, so that nobody takes another than they have seen."""
        version = versions(connection, [webhook_id]).get(webhook_id)
        if version is None:
            return False
        before = announced.announced(self._secrets(connection, [webhook_id])[0].get(webhook_id, {}))
        after = announced.with_another(before, announcement)
        if after != before:
            kept = msgspec.json.encode(after)
            self._change_secrets(connection, webhook_id, {announced.FIELD: kept}, announcement.at)
        if after.kept != before.kept:
            connection.execute(
                update(webhooks)
                .where(webhooks.c.id == webhook_id)
                .values(version=version + 1, epoch=next_epoch(connection))
            )
        return any(kept.secret == announcement.secret for kept in after.kept)

    @writes
    def reseal(self, connection: Connection, limit: int = 500) -> tuple[int, int]:
        """Encrypts with the current key what an older one has encrypted. Returns how many were done and how many remain."""
        openable = [
            secrets.c.envelope.startswith(envelopes_of(other))
            for other in self._vault.fingerprints - {self._vault.current}
        ]
        old = select(secrets).where(or_(false(), *openable))
        rows = connection.execute(old.limit(limit)).all()
        changed = 0
        for row in rows:
            try:
                value = self._vault.open(row.envelope, row.webhook_id, row.field)
            except VaultError as error:
                log.error("a secret cannot be encrypted again", webhook=row.webhook_id, error=str(error))
                continue
            changed += 1
            connection.execute(
                update(secrets)
                .where(secrets.c.id == row.id)
                .values(envelope=self._vault.seal(value, row.webhook_id, row.field))
            )
        left = connection.execute(select(func.count()).select_from(old.subquery())).scalar_one()
        if changed and left:
            return changed, left
        keys.forget_unused(connection, self._vault)
        return changed, 0

    # --- inside a transaction ----------------------------------------------------------------------------------------

    def _change_secrets(
        self, connection: Connection, webhook_id: str, changes: SecretChanges, now: float
    ) -> None:
        for field, value in changes.items():
            connection.execute(
                delete(secrets).where(secrets.c.webhook_id == webhook_id, secrets.c.field == field)
            )
            if value is not None:
                connection.execute(
                    insert(secrets).values(
                        id=new_id("sec"),
                        webhook_id=webhook_id,
                        field=field,
                        envelope=self._vault.seal(value, webhook_id, field),
                        created_at=milliseconds(now),
                    )
                )

    def _promote(self, connection: Connection, webhook_id: str) -> None:
        """The second becomes the main one. It keeps its id, and with it the count of what it matched."""
        second = connection.execute(
            select(secrets).where(secrets.c.webhook_id == webhook_id, secrets.c.field == "second")
        ).one()
        try:
            value = self._vault.open(second.envelope, webhook_id, "second")
        except VaultError as error:
            raise Refused("conflict", str(error)) from error
        connection.execute(
            delete(secrets).where(secrets.c.webhook_id == webhook_id, secrets.c.field == "main")
        )
        connection.execute(
            update(secrets)
            .where(secrets.c.id == second.id)
            .values(field="main", envelope=self._vault.seal(value, webhook_id, "main"))
        )

    def _secrets(
        self, connection: Connection, webhook_ids: list[str]
    ) -> tuple[dict[str, dict[str, StoredSecret]], dict[str, dict[str, str]]]:
        """The secrets by webhook, and why others cannot be decrypted: they must not keep these from being read."""
        held: dict[str, dict[str, StoredSecret]] = {}
        unreadable: dict[str, dict[str, str]] = {}
        for row in _of(connection, select(secrets), secrets.c.webhook_id, webhook_ids):
            try:
                value = self._vault.open(row.envelope, row.webhook_id, row.field)
            except VaultError as error:
                unreadable.setdefault(row.webhook_id, {})[row.field] = str(error)
                continue
            held.setdefault(row.webhook_id, {})[row.field] = value_of(StoredSecret, row, value=value)
        return held, unreadable

    def stored_all(self, connection: Connection, rows: Sequence[Row[Any]]) -> list[Stored]:
        ids = [row.id for row in rows]
        kept, unreadable = self._secrets(connection, ids)
        until = select(samples.c.webhook_id, samples.c.armed_until).where(samples.c.armed_until.is_not(None))
        armed: dict[str, int] = dict(map(tuple, _of(connection, until, samples.c.webhook_id, ids)))
        return [
            _stored(row, kept.get(row.id, {}), unreadable.get(row.id, {}), armed.get(row.id)) for row in rows
        ]


def _of(
    connection: Connection, query: Select[Any], column: ColumnElement[str], webhook_ids: Sequence[str]
) -> Iterator[Row[Any]]:
    """Yields the rows of these webhooks, however many they are: a statement takes a bounded number of parameters."""
    for start in range(0, len(webhook_ids), 500):
        yield from connection.execute(query.where(column.in_(webhook_ids[start : start + 500])))


def _owners(connection: Connection, paths: Collection[str]) -> dict[str, tuple[str, str]]:
    query = select(webhooks.c.path, webhooks.c.id, webhooks.c.name).where(webhooks.c.path.in_(paths))
    return {path: (id, name) for path, id, name in connection.execute(query)}


def _check_path(connection: Connection, webhook: StoredWebhook) -> None:
    path = webhook.settings.path
    owner, name = _owners(connection, [path]).get(path, (webhook.id, "")) if path else (webhook.id, "")
    if owner != webhook.id:
        raise invalid("path", has_path(name))


def _row(webhook: StoredWebhook, epoch: int) -> Parameters:
    return {
        "path": webhook.settings.path,
        "name": webhook.name,
        "enabled": webhook.enabled,
        "held": webhook.held,
        "document": write_document(webhook.settings, webhook.resolved),
        "version": webhook.version,
        "epoch": epoch,
        "updated_at": milliseconds(webhook.updated_at),
    }


def _stored(
    row: Any, kept: dict[str, StoredSecret], unreadable: dict[str, str], armed_until: int | None
) -> Stored:
    try:
        settings, resolved = read_document(row.document)
    except UnreadableSettings as error:
        # Whether the short code was given up cannot be read: it is answered with 503 as well.
        addresses = [row.path, row.short_code] if row.path else [row.short_code]
        return UnreadableWebhook(row.id, addresses, row.name, row.version, str(error))
    return value_of(
        StoredWebhook,
        row,
        settings=settings,
        resolved=resolved,
        secrets=kept,
        unreadable_secrets=unreadable,
        armed_until=seconds(armed_until),
    )
