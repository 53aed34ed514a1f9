"""Answers to requests with an Idempotency-Key. The insert decides who is first. Request and answer are sealed: an
answer may hold an API key, and a request a password, whose plain hash could be guessed."""

from contextlib import suppress
from dataclasses import dataclass, field

from sqlalchemy import ColumnElement, Connection, and_, delete, select, tuple_, update

from postern.stores.secrets.vault import Vault, VaultError
from postern.stores.sql.database import Database
from postern.stores.sql.moments import milliseconds
from postern.stores.sql.repository import Repository, reads, writes
from postern.stores.sql.tables import idempotency
from postern.stores.sql.upsert import insert_first
from postern.stores.sql.writer import Writer

RESEALED_AT_ONCE = 200
_REQUEST = "\0request\0"  # no key of a client holds a NUL: a sealed request can never pass for an answer


@dataclass(frozen=True, slots=True)
class SeenRequest:
    """An earlier request with the same Idempotency-Key; no answer yet while it is still at work."""

    request: bytes = field(repr=False)
    answer: bytes | None = field(repr=False)


class Idempotency(Repository):
    def __init__(self, database: Database, writer: Writer, vault: Vault) -> None:
        super().__init__(database, writer)
        self._vault = vault

    @writes
    def begin(
        self, connection: Connection, actor: str, key: str, request: bytes, now: float, until: float
    ) -> SeenRequest | None:
        """Returns None if the request is ours to do, otherwise the request that came first."""
        sealed = self._sealed(request, actor, _REQUEST + key)
        # Everybody's that are over: the table stays as small as a day of creations.
        connection.execute(delete(idempotency).where(idempotency.c.expires_at <= milliseconds(now)))
        values = {
            "actor": actor,
            "key": key,
            "request": sealed,
            "answer": b"",
            "expires_at": milliseconds(until),
        }
        if insert_first(connection, idempotency, values):
            return None
        row = connection.execute(select(idempotency).where(_one(actor, key))).first()
        if row is None:  # it has just expired for another process
            return SeenRequest(request, None)
        try:
            return self._seen(row.request, row.answer, actor, key)
        except VaultError:  # sealed with a key that is no longer there: the answer cannot be repeated, and nothing may be made again
            return SeenRequest(request, None)

    @reads
    def kept(self, connection: Connection, actor: str, now: float) -> dict[str, bytes | None]:
        """The answers by their key; None while the request is at work, or where no key opens it."""
        mine = and_(idempotency.c.actor == actor, idempotency.c.expires_at > milliseconds(now))
        answers: dict[str, bytes | None] = {}
        for row in connection.execute(select(idempotency).where(mine)):
            answers[row.key] = None
            with suppress(VaultError):
                answers[row.key] = (
                    self._vault.open(row.answer.decode(), actor, row.key) if row.answer else None
                )
        return answers

    @writes
    def finish(self, connection: Connection, actor: str, key: str, answer: bytes, until: float) -> None:
        sealed = self._sealed(answer, actor, key)
        change = update(idempotency).where(_one(actor, key))
        connection.execute(change.values(answer=sealed, expires_at=milliseconds(until)))

    @writes
    def forget(self, connection: Connection, actor: str, key: str) -> None:
        connection.execute(delete(idempotency).where(_one(actor, key)))

    async def reseal(self) -> int:
        """Encrypts with the current key what an older one has encrypted. A row that no key opens expires within a day."""
        done = 0
        after: tuple[str, str] | None = ("", "")
        while after is not None:
            changed, after = await self._reseal_some(after)
            done += changed
        return done

    @writes
    def _reseal_some(
        self, connection: Connection, after: tuple[str, str]
    ) -> tuple[int, tuple[str, str] | None]:
        """Returns how many rows were changed, and where to go on."""
        place = idempotency.c.actor, idempotency.c.key
        following = select(idempotency).where(tuple_(*place) > after).order_by(*place)
        rows = connection.execute(following.limit(RESEALED_AT_ONCE)).all()
        changed = sum(self._resealed(connection, row.actor, row.key, row.request, row.answer) for row in rows)
        return changed, (rows[-1].actor, rows[-1].key) if len(rows) == RESEALED_AT_ONCE else None

    def _resealed(self, connection: Connection, actor: str, key: str, request: bytes, answer: bytes) -> bool:
        if all(self._vault.sealed_with_current(sealed.decode()) for sealed in (request, answer) if sealed):
            return False
        try:
            seen = self._seen(request, answer, actor, key)
        except VaultError:
            return False
        values = {"request": self._sealed(seen.request, actor, _REQUEST + key)}
        if seen.answer is not None:
            values["answer"] = self._sealed(seen.answer, actor, key)
        connection.execute(update(idempotency).where(_one(actor, key)).values(values))
        return True

    def _seen(self, request: bytes, answer: bytes, actor: str, key: str) -> SeenRequest:
        return SeenRequest(
            self._vault.open(request.decode(), actor, _REQUEST + key),
            self._vault.open(answer.decode(), actor, key) if answer else None,
        )

    def _sealed(self, value: bytes, actor: str, key: str) -> bytes:
        return self._vault.seal(value, actor, key).encode()


def _one(actor: str, key: str) -> ColumnElement[bool]:
    return and_(idempotency.c.actor == actor, idempotency.c.key == key)
