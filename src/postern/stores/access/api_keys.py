"""API keys: only their digests are stored."""

from hashlib import sha256

from sqlalchemy import Connection, delete, insert, select, update

from postern.core.access.accounts import ApiKey
from postern.core.access.audit import AuditEntry
from postern.stores.access.audit import changed_one, write_note
from postern.stores.sql.moments import all_of, first_of, milliseconds, row_of
from postern.stores.sql.repository import Repository, reads, writes
from postern.stores.sql.tables import api_keys


class ApiKeys(Repository):
    @writes
    def add(self, connection: Connection, key: ApiKey, secret: str, note: AuditEntry | None = None) -> None:
        connection.execute(insert(api_keys).values(row_of(key, digest=digest(secret))))
        write_note(connection, note)

    @reads
    def of_secret(self, connection: Connection, secret: str) -> ApiKey | None:
        return first_of(ApiKey, connection, select(api_keys).where(api_keys.c.digest == digest(secret)))

    @reads
    def all(self, connection: Connection) -> list[ApiKey]:
        return all_of(ApiKey, connection, select(api_keys).order_by(api_keys.c.id.desc()))

    @writes
    def delete(self, connection: Connection, key_id: str, note: AuditEntry | None = None) -> bool:
        return changed_one(connection, delete(api_keys).where(api_keys.c.id == key_id), note)

    @writes
    def used(self, connection: Connection, key_id: str, now: float) -> None:
        values = {"last_used_at": milliseconds(now)}
        connection.execute(update(api_keys).where(api_keys.c.id == key_id).values(values))


def digest(secret: str) -> bytes:
    """A fast hash is enough for a secret of 256 random bits, and a look-up by it leaks nothing."""
    return sha256(secret.encode("utf-8", "surrogateescape")).digest()
