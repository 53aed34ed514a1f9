"""One database, two ways in: a pool of readers, and the one writer (``writer.py``) that everything durable goes through."""

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.pool import QueuePool

from postern.core.invocation import StoreUnavailable

T = TypeVar("T")

READERS = 4
BUSY_TIMEOUT_SECONDS = 5.0


class Database:
    """Readers run in a few threads of their own, so that a slow search never holds up the event loop or the writer."""

    def __init__(self, url: str) -> None:
        self.url: URL = make_url(url)
        if self.url.get_backend_name() == "sqlite":
            if self.url.database:
                Path(self.url.database).parent.mkdir(parents=True, exist_ok=True)
            self.readers = _sqlite_engine(self.url, begin="BEGIN")
            # IMMEDIATE: a writer that starts as a reader and then upgrades can fail with "locked" however long it may wait.
            self.writer = _sqlite_engine(self.url, begin="BEGIN IMMEDIATE")
        elif self.url.get_backend_name() == "postgresql":
            url_with_driver = self.url.set(drivername="postgresql+psycopg")
            self.readers = create_engine(url_with_driver, pool_size=READERS, max_overflow=0, pool_pre_ping=True)
            self.writer = create_engine(url_with_driver, pool_size=1, max_overflow=1, pool_pre_ping=True)
        else:
            raise ValueError("the database URL must begin with sqlite:/// or postgresql://")
        self.is_sqlite = self.writer.dialect.name == "sqlite"
        self._threads = ThreadPoolExecutor(READERS, thread_name_prefix="reader")

    async def read(self, query: Callable[[Connection], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, self.read_now, query)

    def read_now(self, query: Callable[[Connection], T]) -> T:
        try:
            with self.readers.connect() as connection:
                return query(connection)
        except (OperationalError, DBAPIError) as error:
            raise StoreUnavailable(str(error.orig)) from error

    def close(self) -> None:
        self._threads.shutdown(wait=True)
        self.readers.dispose()
        self.writer.dispose()


def _sqlite_engine(url: URL, begin: str) -> Engine:
    engine = create_engine(
        url,
        poolclass=QueuePool,
        pool_size=READERS,
        max_overflow=2,
        connect_args={"timeout": BUSY_TIMEOUT_SECONDS, "check_same_thread": False, "cached_statements": 256},
    )

    @event.listens_for(engine, "connect")
    def configure(connection: sqlite3.Connection, _record: Any) -> None:
        connection.isolation_level = None  # the driver's own BEGIN comes too late and is never IMMEDIATE
        for pragma in (
            "journal_mode=WAL",
            "synchronous=FULL",  # NORMAL may lose the last commits with the power; an accepted call was promised
            "foreign_keys=ON",
            "wal_autocheckpoint=0",  # a checkpoint inside a commit is what callers would wait for; see checkpoint.py
            "journal_size_limit=67108864",
            "temp_store=MEMORY",
            "cache_size=-16000",
        ):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def start(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    return engine
