"""Channels that somebody added, with their addresses, which are secrets."""

from sqlalchemy import Connection, and_, delete, func, insert, select

from postern.core.access.audit import AuditEntry
from postern.core.watch.channels import AddedChannel
from postern.identity import new_id
from postern.stores.access.audit import changed_one, write_note
from postern.stores.secrets.vault import Vault, VaultError
from postern.stores.sql.database import Database
from postern.stores.sql.moments import row_of, value_of
from postern.stores.sql.repository import Repository, reads, writes
from postern.stores.sql.tables import channels, secrets
from postern.stores.sql.writer import Writer

_FIELD = "address"


class Channels(Repository):
    def __init__(self, database: Database, writer: Writer, vault: Vault) -> None:
        super().__init__(database, writer)
        self._vault = vault

    @reads
    def all(self, connection: Connection) -> list[tuple[AddedChannel, str]]:
        """Each with its address, the oldest first. The address is empty where no key opens it."""
        address = and_(secrets.c.webhook_id == channels.c.id, secrets.c.field == _FIELD)
        query = select(channels, secrets.c.envelope).join(secrets, address).order_by(channels.c.id)
        return [
            (value_of(AddedChannel, row), self._opened(row.id, row.envelope))
            for row in connection.execute(query)
        ]

    def _opened(self, channel_id: str, envelope: str) -> str:
        try:
            return self._vault.open(envelope, channel_id, _FIELD).decode()
        except VaultError:
            return ""

    @writes
    def add(
        self, connection: Connection, channel: AddedChannel, address: str, most: int, note: AuditEntry
    ) -> bool:
        """False, and nothing written, where there are that many already."""
        if (connection.scalar(select(func.count()).select_from(channels)) or 0) >= most:
            return False
        row = row_of(channel)
        envelope = self._vault.seal(address.encode(), channel.id, _FIELD)
        connection.execute(insert(channels).values(row))
        connection.execute(
            insert(secrets).values(
                id=new_id("sec"),
                webhook_id=channel.id,
                field=_FIELD,
                envelope=envelope,
                created_at=row["created_at"],
            )
        )
        write_note(connection, note)
        return True

    @writes
    def delete(self, connection: Connection, channel_id: str, note: AuditEntry) -> bool:
        connection.execute(
            delete(secrets).where(secrets.c.webhook_id == channel_id, secrets.c.field == _FIELD)
        )
        return changed_one(connection, delete(channels).where(channels.c.id == channel_id), note)
