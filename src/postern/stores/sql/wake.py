"""Waking other processes: a word sent in the transaction that it tells of, heard by every process on the same
database.

Postgres only; on SQLite one process serves, and what commands change is found by looking. Nothing depends on
a word being heard: it only says when to look.
"""

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, func, select
from sqlalchemy.engine import URL

from postern.observe.logs import log
from postern.stores.sql.database import ALONE_LOCK, REACHING

if TYPE_CHECKING:
    import psycopg

CHANNEL = "postern"
CONFIGURATION, DUE, ANSWER = "configuration", "due", "answer"
"""``ANSWER`` comes with the delivery's key: its row says now what the caller hears."""
HANDED = "handed"
"""With a listener's id: something is there for it."""
LISTENING, DEAF = "listening", "deaf"
"""No process announces these: from now on what others announce is heard here, or is not."""
LONGEST_PAUSE = 5.0
AGAIN_AFTER = 60.0
"""Seconds until it is said once more, as of everything else that the store's absence stops."""


def announce(connection: Connection, word: str, about: str = "") -> None:
    """Heard when the transaction commits. Not at every call: Postgres commits those who announce one after the other."""
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_notify(CHANNEL, f"{word}:{about}" if about else word)))


async def listen(url: URL, on_message: Callable[[str], None]) -> None:
    """Runs until it is cancelled. ``LISTENING`` comes at every beginning: nothing was heard before."""
    import psycopg  # not at the top: see `upsert.py`

    pause, say_again_at = 0.1, 0.0
    while True:
        try:
            async with await psycopg.AsyncConnection.connect(
                _address(url), autocommit=True, **REACHING
            ) as connection:
                await connection.execute(f"LISTEN {CHANNEL}")
                on_message(LISTENING)
                pause = 0.1
                async for notification in connection.notifies():
                    on_message(notification.payload)
        except psycopg.Error as error:
            if time.monotonic() >= say_again_at:
                say_again_at = time.monotonic() + AGAIN_AFTER
                log.warning("no notifications of other processes; polling instead", error=str(error))
        on_message(DEAF)
        await asyncio.sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE)


class AloneLock:
    """The lock that one process at a time may have, until its connection is gone, as with the server's restart."""

    def __init__(self, url: URL) -> None:
        self._address = _address(url)
        self._connection: psycopg.Connection[Any] | None = None

    def take(self) -> bool:
        """False where another process has it. Raises ``psycopg.Error`` where the server cannot be asked."""
        import psycopg

        connection = psycopg.connect(self._address, autocommit=True, **REACHING)
        row = connection.execute(f"SELECT pg_try_advisory_lock({ALONE_LOCK})").fetchone()
        if row != (True,):
            connection.close()
            return False
        self._connection = connection
        return True

    def keep(self) -> bool:
        """Whether it is still ours, or ours again; True also while there is no server that could say otherwise."""
        import psycopg

        try:
            if self._connection is not None:
                self._connection.execute("SELECT 1")
                return True
        except psycopg.Error as error:
            log.warning("the lock of the embedded engine is lost; taking it again", error=str(error))
            self.release()
        try:
            return self.take()
        except psycopg.Error:
            return True

    def release(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _address(url: URL) -> str:
    return url.set(drivername="postgresql").render_as_string(hide_password=False)
