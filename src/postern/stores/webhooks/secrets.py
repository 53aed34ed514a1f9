"""The secrets of webhooks."""

from sqlalchemy import Connection, delete, false, func, insert, or_, select, update

from postern.core.problems import Refused
from postern.core.webhooks.stored import StoredSecret
from postern.identity import new_id
from postern.observe.logs import Log
from postern.stores.secrets import keys
from postern.stores.secrets.vault import Vault, VaultError
from postern.stores.sql.moments import milliseconds, seconds
from postern.stores.sql.tables import secrets
from postern.stores.sql.writer import Writer

log = Log()

SecretChanges = dict[str, bytes | None]
"""By field: a new value, or None to remove it. What is not named stays."""


class Secrets:
    def __init__(self, writer: Writer, vault: Vault) -> None:
        self._writer = writer
        self._vault = vault

    async def capture(self, webhook_id: str, secret: bytes, now: float) -> None:
        await self._writer.write(
            lambda connection: self.change(connection, webhook_id, {"captured": secret}, now)
        )

    async def reseal(self, limit: int = 500) -> tuple[int, int]:
        """Encrypt with the current key what was encrypted with an older one: how many were done, how many
        remain."""

        def job(connection: Connection) -> tuple[int, int]:
            openable = [
                secrets.c.envelope.startswith(f"v1.{other}.")
                for other in self._vault.fingerprints - {self._vault.current}
            ]
            old = select(secrets).where(or_(false(), *openable))
            rows = connection.execute(old.limit(limit)).all()
            changed = 0
            for row in rows:
                try:
                    value = self._vault.open(row.envelope, row.webhook_id, row.field)
                except VaultError as error:
                    log.error("a secret cannot be encrypted anew", webhook=row.webhook_id, error=str(error))
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

        return await self._writer.write(job)

    # --- inside a transaction ----------------------------------------------------------------------------------------

    def change(self, connection: Connection, webhook_id: str, changes: SecretChanges, now: float) -> None:
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

    def promote(self, connection: Connection, webhook_id: str) -> None:
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

    def of(
        self, connection: Connection, webhook_ids: list[str]
    ) -> tuple[dict[str, dict[str, StoredSecret]], dict[str, dict[str, str]]]:
        """By webhook: its secrets, and those that cannot be decrypted, with the reason. One that cannot must not
        keep the others from being read."""
        held: dict[str, dict[str, StoredSecret]] = {}
        unreadable: dict[str, dict[str, str]] = {}
        for start in range(0, len(webhook_ids), 500):
            for row in connection.execute(
                select(secrets).where(secrets.c.webhook_id.in_(webhook_ids[start : start + 500]))
            ):
                try:
                    value = self._vault.open(row.envelope, row.webhook_id, row.field)
                except VaultError as error:
                    unreadable.setdefault(row.webhook_id, {})[row.field] = str(error)
                    continue
                held.setdefault(row.webhook_id, {})[row.field] = StoredSecret(
                    row.id, value, seconds(row.created_at)
                )
        return held, unreadable
