"""What creations with an Idempotency-Key were answered. The insert decides who is first; answers are sealed: one holds an API key."""

from sqlalchemy import Connection, delete, select, update
from sqlalchemy.dialects import postgresql, sqlite

from postern.core.records import SeenRequest
from postern.stores.database import Database
from postern.stores.moments import milliseconds
from postern.stores.tables import idempotency
from postern.stores.vault import Vault, VaultError
from postern.stores.writer import Writer


class Idempotency:
    def __init__(self, database: Database, writer: Writer, vault: Vault) -> None:
        self._database = database
        self._writer = writer
        self._vault = vault

    async def begin(self, actor: str, key: str, request: bytes, now: float, until: float) -> SeenRequest | None:
        """None: it is ours to do. Otherwise who came first."""

        def job(connection: Connection) -> SeenRequest | None:
            # Sweeps everybody's: the table holds a day of creations and never needs another broom.
            connection.execute(delete(idempotency).where(idempotency.c.expires_at <= milliseconds(now)))
            values = {"actor": actor, "key": key, "request": request, "answer": b"", "expires_at": milliseconds(until)}
            mine = (idempotency.c.actor == actor, idempotency.c.key == key)
            dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
            made = connection.execute(dialect.insert(idempotency).values(values).on_conflict_do_nothing())
            if made.rowcount == 1:
                return None
            row = connection.execute(select(idempotency).where(*mine)).first()
            return SeenRequest(request, None) if row is None else SeenRequest(row.request, self._opened(row.answer, actor, key))

        return await self._writer.write(job)

    async def finish(self, actor: str, key: str, answer: bytes, until: float) -> None:
        sealed = self._vault.seal(answer, actor, key).encode()
        change = update(idempotency).where(idempotency.c.actor == actor, idempotency.c.key == key)
        await self._writer.write(lambda connection: connection.execute(change.values(answer=sealed, expires_at=milliseconds(until))))

    async def forget(self, actor: str, key: str) -> None:
        gone = delete(idempotency).where(idempotency.c.actor == actor, idempotency.c.key == key)
        await self._writer.write(lambda connection: connection.execute(gone))

    def _opened(self, sealed: bytes, actor: str, key: str) -> bytes | None:
        try:
            return self._vault.open(sealed.decode(), actor, key) if sealed else None
        except VaultError:  # sealed with a key that is no longer there: nobody can be told, and nothing may be made again
            return None
