"""API keys: only their digests are kept."""

from hashlib import sha256

from sqlalchemy import Connection, Row, delete, insert, select, update

from postern.core.access.accounts import ApiKey
from postern.core.access.audit import AuditEntry
from postern.stores.access.audit import changed_one, write_note
from postern.stores.sql.moments import milliseconds, seconds
from postern.stores.sql.repository import Repository, reads, writes
from postern.stores.sql.tables import api_keys


class ApiKeys(Repository):
    @writes
    def add(self, connection: Connection, key: ApiKey, secret: str, note: AuditEntry | None = None) -> None:
        values = {
            "id": key.id, "name": key.name, "level": key.level, "prefix": key.prefix, "digest": digest(secret),
            "created_at": milliseconds(key.created_at), "created_by": key.created_by,
        }  # fmt: skip
        connection.execute(insert(api_keys).values(values))
        write_note(connection, note)

    @reads
    def of_secret(self, connection: Connection, secret: str) -> ApiKey | None:
        row = connection.execute(select(api_keys).where(api_keys.c.digest == digest(secret))).first()
        return None if row is None else _key_of(row)

    @reads
    def all(self, connection: Connection) -> list[ApiKey]:
        return [_key_of(row) for row in connection.execute(select(api_keys).order_by(api_keys.c.id.desc()))]

    @writes
    def delete(self, connection: Connection, key_id: str, note: AuditEntry | None = None) -> bool:
        return changed_one(connection, delete(api_keys).where(api_keys.c.id == key_id), note)

    @writes
    def used(self, connection: Connection, key_id: str, now: float) -> None:
        values = {"last_used_at": milliseconds(now)}
        (connection.execute(update(api_keys).where(api_keys.c.id == key_id).values(values)))


def digest(secret: str) -> bytes:
    """The secret has 256 random bits: a fast hash is enough, and looking one up by it leaks nothing."""
    return sha256(secret.encode("utf-8", "surrogateescape")).digest()


def _key_of(row: Row[tuple[object, ...]]) -> ApiKey:
    return ApiKey(
        row.id,
        row.name,
        row.level,
        row.prefix,
        seconds(row.created_at),
        row.created_by,
        seconds(row.last_used_at),
    )
