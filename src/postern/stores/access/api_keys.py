"""API keys: only their digests are kept."""

from hashlib import sha256

from sqlalchemy import Connection, Row, delete, insert, select, update

from postern.core.access.accounts import ApiKey
from postern.core.access.audit import AuditEntry
from postern.stores.access.audit import write_note
from postern.stores.sql.database import Database
from postern.stores.sql.moments import milliseconds, seconds
from postern.stores.sql.tables import api_keys
from postern.stores.sql.writer import Writer


class ApiKeys:
    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer

    async def add(self, key: ApiKey, secret: str, note: AuditEntry | None = None) -> None:
        values = {
            "id": key.id, "name": key.name, "level": key.level, "prefix": key.prefix, "digest": digest(secret),
            "created_at": milliseconds(key.created_at), "created_by": key.created_by,
        }  # fmt: skip

        def job(connection: Connection) -> None:
            connection.execute(insert(api_keys).values(values))
            write_note(connection, note)

        await self._writer.write(job)

    async def of_secret(self, secret: str) -> ApiKey | None:
        def query(connection: Connection) -> ApiKey | None:
            row = connection.execute(select(api_keys).where(api_keys.c.digest == digest(secret))).first()
            return None if row is None else _key_of(row)

        return await self._database.read(query)

    async def all(self) -> list[ApiKey]:
        def query(connection: Connection) -> list[ApiKey]:
            return [
                _key_of(row) for row in connection.execute(select(api_keys).order_by(api_keys.c.id.desc()))
            ]

        return await self._database.read(query)

    async def delete(self, key_id: str, note: AuditEntry | None = None) -> bool:
        def job(connection: Connection) -> bool:
            deleted = connection.execute(delete(api_keys).where(api_keys.c.id == key_id)).rowcount == 1
            write_note(connection, note if deleted else None)
            return deleted

        return await self._writer.write(job)

    async def used(self, key_id: str, now: float) -> None:
        values = {"last_used_at": milliseconds(now)}
        await self._writer.write(
            lambda connection: connection.execute(
                update(api_keys).where(api_keys.c.id == key_id).values(values)
            )
        )


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
