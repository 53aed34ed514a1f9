"""Waking other processes: a word sent in the transaction that it tells of, heard by every process on the same
database.

Postgres only; on SQLite one process serves, and what commands change is found by looking. Nothing depends on
a word being heard: it only says when to look.
"""

import asyncio
from collections.abc import Callable

import structlog
from sqlalchemy import Connection, func, select
from sqlalchemy.engine import URL

from postern.stores.sql.database import ALONE_LOCK, REACHING

CHANNEL = "postern"
CONFIGURATION, DUE, ANSWER = "configuration", "due", "answer:"
LISTENING, DEAF = "listening", "deaf"
LONGEST_PAUSE = 5.0

log = structlog.get_logger("postern.wake")


def tell(connection: Connection, word: str) -> None:
    """Heard when the transaction commits. Not for what happens at every call: Postgres commits tellers one
    after the other."""
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_notify(CHANNEL, word)))


async def listen(url: URL, hear: Callable[[str], None]) -> None:
    """Runs until it is cancelled. ``LISTENING`` is heard at every beginning: what was said before went
    unheard."""
    import psycopg  # not at the top: see `upsert.py`

    pause = 0.1
    while True:
        try:
            async with await psycopg.AsyncConnection.connect(
                _address(url), autocommit=True, **REACHING
            ) as connection:
                await connection.execute(f"LISTEN {CHANNEL}")
                hear(LISTENING)
                pause = 0.1
                async for notification in connection.notifies():
                    hear(notification.payload)
        except psycopg.Error as error:
            log.warning("not listening to the other processes; looking often instead", error=str(error))
        hear(DEAF)
        await asyncio.sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE)


def hold(url: URL) -> Callable[[], None] | None:
    """Take the lock that one process at a time may have: how to let go of it, or None where another one has
    it. Its connection holds it."""
    import psycopg

    connection = psycopg.connect(_address(url), autocommit=True, **REACHING)
    row = connection.execute(f"SELECT pg_try_advisory_lock({ALONE_LOCK})").fetchone()
    if row == (True,):
        return connection.close
    connection.close()
    return None


def _address(url: URL) -> str:
    return url.set(drivername="postgresql").render_as_string(hide_password=False)
