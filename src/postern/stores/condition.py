"""Whether calls can be stored: judged by how the last commits went, and by trying one where none came lately."""

import asyncio
import time
from contextlib import suppress

from sqlalchemy import Connection

from postern.core.deliveries.delivery import delivery_key
from postern.core.history.invocation import Delivery, Entry, Invocation, StoreUnavailable
from postern.identity import new_id
from postern.stores.calls.recorder import record_all
from postern.stores.chores import put_down
from postern.stores.sql import schema
from postern.stores.sql.database import Database
from postern.stores.sql.writer import Writer

FRESH = 30.0
"""Seconds for which a commit that went well speaks for the next one. Each trial is a write to a disk that could rest."""
CALLS_FAIL_FOR = 10.0
"""Seconds for which a call that could not be stored outweighs a good trial: only the call may need what is damaged."""
PATIENCE = 2.0
"""A balancer does not wait long for an answer; a commit that takes longer is trouble by itself."""

TRIAL = "trial"


class Condition:
    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer
        self._trial: asyncio.Task[None] | None = None

    async def trouble(self) -> str | None:
        """Why calls cannot be stored now, or None. It takes a few seconds at most, whatever the database does."""
        reason = await self._found()
        if reason is None:
            return None
        # A stranger may ask for /readyz: the server's address is in the log, and not here.
        return (
            "the database server cannot be reached"
            if "connection to server" in reason
            else reason.partition("\n")[0] or "the database gives no reason"
        )

    async def _found(self) -> str | None:
        if lost := self._database.lost():
            return lost
        commits, now = self._writer.commits, time.monotonic()
        if commits.since is not None and now - commits.since > PATIENCE:
            return f"a commit has not come to its end for {now - commits.since:.0f} s"
        if commits.call_trouble is not None and now - commits.call_failed_at < CALLS_FAIL_FOR:
            return commits.call_trouble
        if commits.trouble is not None or now - commits.succeeded_at > FRESH:
            trouble = await self._try_a_commit()
            if trouble is not None:
                return trouble
        return await self._wrong_schema()

    async def _try_a_commit(self) -> str | None:
        # One at a time: a trial that hangs must not be joined by more of its kind.
        if self._trial is None or self._trial.done():
            self._trial = asyncio.create_task(self._writer.write(_trial))
        try:
            async with asyncio.timeout(PATIENCE):
                await asyncio.shield(self._trial)
        except TimeoutError:
            return f"a commit has not come to its end within {PATIENCE:.0f} s"
        except StoreUnavailable as error:
            return str(error)
        except Exception as error:  # whatever it is, a call would meet it too
            return f"{type(error).__name__}: {error}"
        return None

    async def _wrong_schema(self) -> str | None:
        try:
            async with asyncio.timeout(PATIENCE):
                version = await self._database.read(schema.revision)
        except TimeoutError:
            return f"the database has not answered within {PATIENCE:.0f} s"
        except Exception as error:
            return str(error)
        if version == schema.newest():
            return None
        return f"the schema is {version or 'none'}, and this version needs {schema.newest()}"

    async def close(self) -> None:
        if self._trial is not None:
            self._trial.cancel()
            with suppress(BaseException):
                await self._trial


def _trial(connection: Connection) -> None:
    """Writes and undoes what a call needs, and commits a row of our own: a commit needs something to write."""
    now = time.time()
    id = new_id("inv")
    invocation = Invocation(
        id=id, webhook_id=TRIAL, received_at=now, outcome="accepted", code="accepted", status=200, config_version=0, method="POST",
        path=b"", query=b"", headers=b"[]", body=b"{}", body_size=2, address="", duration_us=0, matched="", detail="", trace=b"[]",
    )  # fmt: skip
    delivery = Delivery(delivery_key(id, 1), id, TRIAL, 1, "queued", 0, now, {}, now)
    savepoint = connection.begin_nested()
    record_all(connection, [Entry(invocation, delivery)])
    savepoint.rollback()
    put_down(connection, TRIAL, "", now)
