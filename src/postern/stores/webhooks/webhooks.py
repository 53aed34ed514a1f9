"""Webhooks: configuration, kept whole and versioned."""

from collections.abc import Callable
from itertools import islice
from typing import Any

from sqlalchemy import Connection, Row, bindparam, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from postern.core.access.audit import AuditEntry
from postern.core.problems import Refused
from postern.core.webhooks.stored import ChangedWebhooks, StoredWebhook, Tally
from postern.stores import schedules
from postern.stores.access.audit import write_note, write_notes
from postern.stores.sql.database import Database
from postern.stores.sql.moments import milliseconds, seconds
from postern.stores.sql.tables import epochs, tallies, webhooks
from postern.stores.sql.writer import Writer
from postern.stores.webhooks.rows import Stored, row_of, stored_all
from postern.stores.webhooks.secrets import SecretChanges, Secrets
from postern.stores.webhooks.versions import next_epoch, versions


class Webhooks:
    def __init__(self, database: Database, writer: Writer, secrets: Secrets) -> None:
        self._database = database
        self._writer = writer
        self._secrets = secrets

    async def create(
        self, webhook: StoredWebhook, changes: SecretChanges, note: AuditEntry | None = None
    ) -> None:
        def job(connection: Connection) -> None:
            connection.execute(
                insert(webhooks).values(
                    id=webhook.id,
                    short_code=webhook.short_code,
                    created_at=milliseconds(webhook.created_at),
                    **row_of(webhook, next_epoch(connection)),
                )
            )
            self._secrets.change(connection, webhook.id, changes, webhook.created_at)
            schedules.follow(connection, webhook, touched=False)
            write_note(connection, note)

        try:
            await self._writer.write(job)
        except IntegrityError:
            raise Refused("conflict", "a webhook has, or once had, this id or this URL") from None

    async def update(
        self,
        webhook: StoredWebhook,
        seen_version: int,
        changes: SecretChanges,
        note: AuditEntry | None = None,
        promote: bool = False,
    ) -> bool:
        """False when somebody else was faster: nothing is changed then."""

        def job(connection: Connection) -> bool:
            changed = connection.execute(
                update(webhooks)
                .where(
                    webhooks.c.id == webhook.id,
                    webhooks.c.version == seen_version,
                    webhooks.c.deleted_at.is_(None),
                )
                .values(**row_of(webhook, next_epoch(connection)))
            )
            if changed.rowcount != 1:
                return False
            if promote:
                self._secrets.promote(connection, webhook.id)
            self._secrets.change(connection, webhook.id, changes, webhook.updated_at)
            schedules.follow(
                connection, webhook, touched=any(field.startswith("header:") for field in changes)
            )
            write_note(connection, note)
            return True

        return await self._writer.write(job)

    async def update_each(self, changed: list[tuple[StoredWebhook, AuditEntry]]) -> list[bool]:
        """Each one version on, its secrets as they are; False for each where somebody else was faster. In one
        transaction: not too many at once, for calls wait behind it."""

        def job(connection: Connection) -> list[bool]:
            there = versions(connection, [webhook.id for webhook, _ in changed])
            done = [there.get(webhook.id) == webhook.version - 1 for webhook, _ in changed]
            doing = [one for one, is_done in zip(changed, done, strict=True) if is_done]
            if doing:
                epoch = next_epoch(connection)
                rows = [row_of(webhook, epoch) | {"of": webhook.id} for webhook, _ in doing]
                connection.execute(_UPDATE, rows)
                for webhook, _ in doing:
                    if webhook.settings.schedule is not None:
                        schedules.follow(connection, webhook, touched=False)
                write_notes(connection, [note for _, note in doing])
            return done

        return await self._writer.write(job)

    async def get(self, webhook_id: str) -> Stored | None:
        def query(connection: Connection) -> Stored | None:
            row = connection.execute(
                select(webhooks).where(webhooks.c.id == webhook_id, webhooks.c.deleted_at.is_(None))
            ).first()
            return None if row is None else stored_all(connection, [row], self._secrets)[0]

        return await self._database.read(query)

    async def names(self, among: list[str]) -> list[tuple[str, str, bool]]:
        """Id, name, and whether it is deleted."""
        found = select(webhooks.c.id, webhooks.c.name, webhooks.c.deleted_at.is_not(None))
        found = found.where(webhooks.c.id.in_(among))
        return await self._database.read(
            lambda connection: [(row[0], row[1], bool(row[2])) for row in connection.execute(found)]
        )

    async def deleted_names(self, is_meant: Callable[[str], bool], limit: int) -> dict[str, str]:
        """What deleted webhooks were called, by id: the newest whose name is meant. Compared here, because SQLite
        and Postgres have each their own idea of small letters."""
        found = select(webhooks.c.id, webhooks.c.name).where(webhooks.c.deleted_at.is_not(None))
        found = found.order_by(webhooks.c.id.desc())

        def query(connection: Connection) -> dict[str, str]:
            meant = ((row[0], row[1]) for row in connection.execute(found) if is_meant(row[1]))
            return dict(islice(meant, limit))

        return await self._database.read(query)

    async def some(self, webhook_ids: list[str]) -> dict[str, Stored]:
        """Those of them that are there, by id."""

        def query(connection: Connection) -> dict[str, Stored]:
            rows: list[Row[Any]] = []
            for start in range(0, len(webhook_ids), 500):
                among = webhooks.c.id.in_(webhook_ids[start : start + 500])
                rows += connection.execute(select(webhooks).where(among, webhooks.c.deleted_at.is_(None)))
            return {one.id: one for one in stored_all(connection, rows, self._secrets)}

        return await self._database.read(query)

    async def page(self, limit: int, before: str | None = None) -> list[Stored]:
        def query(connection: Connection) -> list[Stored]:
            statement = (
                select(webhooks)
                .where(webhooks.c.deleted_at.is_(None))
                .order_by(webhooks.c.id.desc())
                .limit(limit)
            )
            if before:
                statement = statement.where(webhooks.c.id < before)
            rows = connection.execute(statement).all()
            return stored_all(connection, rows, self._secrets)

        return await self._database.read(query)

    async def changed_since(self, epoch: int) -> ChangedWebhooks:
        def query(connection: Connection) -> ChangedWebhooks:
            now = connection.execute(select(epochs.c.epoch)).scalar_one_or_none() or 0
            changed = ChangedWebhooks(now)
            if now == epoch:
                return changed
            rows = connection.execute(select(webhooks).where(webhooks.c.epoch > epoch)).all()
            changed.deleted.extend(row.id for row in rows if row.deleted_at is not None)
            for one in stored_all(connection, [row for row in rows if row.deleted_at is None], self._secrets):
                if isinstance(one, StoredWebhook):
                    changed.stored.append(one)
                else:
                    changed.unreadable.append(one)
            return changed

        return await self._database.read(query)

    async def tallies(self, webhook_ids: list[str]) -> dict[str, dict[str, Tally]]:
        """By webhook: how many calls, and how often each secret matched, with the last time."""

        def query(connection: Connection) -> dict[str, dict[str, Tally]]:
            statement = select(
                tallies.c.webhook_id, tallies.c.name, func.sum(tallies.c.count), func.max(tallies.c.last_at)
            ).group_by(tallies.c.webhook_id, tallies.c.name)
            found: dict[str, dict[str, Tally]] = {webhook_id: {} for webhook_id in webhook_ids}
            for webhook_id, name, count, last_at in connection.execute(
                statement.where(tallies.c.webhook_id.in_(webhook_ids))
            ):
                found[webhook_id][name] = Tally(int(count), seconds(last_at))
            return found

        return await self._database.read(query)


_UPDATE = (
    update(webhooks)
    .where(webhooks.c.id == bindparam("of"))
    .values(
        {
            name: bindparam(name)
            for name in ("name", "enabled", "held", "document", "version", "epoch", "updated_at")
        }
    )
)
