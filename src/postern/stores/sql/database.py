"""One database, two ways in: a pool of readers, and the one writer (``writer.py``) for everything durable."""

import asyncio
import os
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import DataError, DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.pool import QueuePool

from postern.core.history.invocation import StoreUnavailable
from postern.core.problems import Refused
from postern.left_log import Damaged, note_log, put_left_log_aside
from postern.observe.logs import log
from postern.private_files import private_file
from postern.stores.sql.bulk import in_the_driver

T = TypeVar("T")

READERS = 4
SEARCHERS = 2
READER_CACHE, WRITER_CACHE = 4_000, 16_000
"""KiB of pages that each connection keeps in memory. A connection that reads new calls all the time fills all of them."""
MOST_SEARCHES = 10
"""Under way and waiting."""
LONGEST_SEARCH = 20.0
BUSY_TIMEOUT_SECONDS = 2.0
"""How long a commit waits for another process's lock. A call may wait for the commit before its own too, and senders
give up after 3 to 10 seconds: a 503 in time is worth more than a commit that nobody hears of."""

SHARDS = 1024
SHARD_LOCK = 0x706F7374
"""Advisory locks: their first number is one of Postern's own, their second says which shard."""
MIGRATION_LOCK = f"{SHARD_LOCK}, -1"
ALONE_LOCK = f"{SHARD_LOCK}, -2"

# A server that has vanished without a word must be noticed, or every waiting call would wait with it.
REACHING: dict[str, Any] = {
    "connect_timeout": 3,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}


OLDEST_SQLITE = (3, 39)
"""The oldest that the tests have run on."""


def ensure_sqlite() -> None:
    """Raises ``StoreUnavailable`` for an SQLite that is too old: it would fail at some statement, sooner or later."""
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        oldest = ".".join(map(str, OLDEST_SQLITE))
        raise StoreUnavailable(
            f"SQLite {oldest} or newer is needed, and this Python has {sqlite3.sqlite_version}; take another Python"
        )


def value_not_storable() -> Refused:
    """Postgres knows no NUL in a text, for one. SQLite does, and finds nothing of that name."""
    return Refused("invalid_request", "something in it is no value that the database can hold")


class Database:
    """Readers run in threads of their own, so that a slow search never holds up the event loop or the writer."""

    def __init__(self, url: str) -> None:
        self.url: URL = make_url(url)
        self.file: DatabaseFile | None = None
        if self.url.get_backend_name() == "sqlite":
            ensure_sqlite()
            self.file = DatabaseFile(Path(self.url.database or ""))
            self.readers = _sqlite_engine(self.url, self.file, "BEGIN", READER_CACHE)
            # IMMEDIATE: a writer that starts as a reader and then upgrades can fail with "locked" however
            # long it may wait.
            self.writer = _sqlite_engine(self.url, self.file, "BEGIN IMMEDIATE", WRITER_CACHE)
        elif self.url.get_backend_name() == "postgresql":
            self.readers = _postgres_engine(self.url, READERS + SEARCHERS, _READING)
            self.writer = _postgres_engine(self.url, 1, _WRITING)
        else:
            raise ValueError("the database URL must begin with sqlite:/// or postgresql://")
        self.is_sqlite = self.writer.dialect.name == "sqlite"
        self._threads = ThreadPoolExecutor(READERS, thread_name_prefix="reader")
        self._search_threads = ThreadPoolExecutor(SEARCHERS, thread_name_prefix="searcher")
        self._searches: set[_Search] = set()

    def lost(self) -> str | None:
        """Returns why nothing that is committed now would be found again, or None. It takes microseconds."""
        return self.file.lost() if self.file is not None else None

    async def read(self, query: Callable[[Connection], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, self.read_now, query)

    async def search(self, query: Callable[[Connection], T]) -> T:
        """Runs a query that reads bodies in threads of its own, so that nobody who waits for a short answer stands
        behind it. It is ended when nobody waits for it any more, or when it takes too long."""
        if len(self._searches) >= MOST_SEARCHES:
            raise Refused(
                "rate_limited", "Too many searches are under way; try again in a few seconds.", retry_after=5
            )
        search = _Search()
        running = self._search_threads.submit(lambda: self._safely(lambda: search.run(self.readers, query)))
        self._searches.add(search)
        running.add_done_callback(lambda _: self._searches.discard(search))
        try:
            async with asyncio.timeout(LONGEST_SEARCH):
                return await asyncio.wrap_future(running)
        except TimeoutError:
            raise Refused(
                "temporarily_unavailable",
                f"The search took longer than {LONGEST_SEARCH:g} seconds; narrow it to a webhook or a time.",
            ) from None
        finally:
            search.stop()

    def read_now(self, query: Callable[[Connection], T]) -> T:
        return self._safely(lambda: self._read_once(query))

    def _safely(self, read: Callable[[], T]) -> T:
        try:
            try:
                return read()
            except DBAPIError as error:
                if not error.connection_invalidated:
                    raise
                return read()  # the server was restarted; the pool has thrown its old connections away
        except DataError as error:
            raise value_not_storable() from error
        except DBAPIError as error:
            raise StoreUnavailable(str(error.orig)) from error
        except PoolTimeout as error:
            raise StoreUnavailable("every connection for reading is busy") from error

    def _read_once(self, query: Callable[[Connection], T]) -> T:
        with self.readers.connect() as connection:
            return query(connection)

    def close(self) -> None:
        for search in list(self._searches):
            search.stop()
        self._search_threads.shutdown(wait=True, cancel_futures=True)
        self._threads.shutdown(wait=True)
        self.readers.dispose()
        self.writer.dispose()


class _Search:
    """A query that can be ended from outside the thread it runs in."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stopped = False
        self._driver: Any = None

    def run(self, engine: Engine, query: Callable[[Connection], T]) -> T:
        with engine.connect() as connection:
            with self._lock:
                if self._stopped:
                    raise StoreUnavailable("nobody waits for this search")
                self._driver = connection.connection.dbapi_connection
            try:
                return query(connection)
            finally:
                with self._lock:  # its next user must not be interrupted
                    self._driver = None

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            if isinstance(self._driver, sqlite3.Connection):
                self._driver.interrupt()
            elif self._driver is not None:
                self._driver.cancel()


class DatabaseFile:
    """SQLite's file. The operating system lets others delete it, move it or put another one in its place while
    it is open: commits then go on into a file that nobody finds again, and SQLite says nothing."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = path.resolve().with_name(f"{path.resolve().name}.lock")
        try:
            if kept := put_left_log_aside(path.resolve(), self._lock):
                log.warning(
                    "the database was replaced: the log of the earlier one is kept",
                    database=path.name,
                    kept=kept,
                )
        except Damaged as error:
            raise StoreUnavailable(str(error)) from error
        private_file(path)
        self._identity = _identity(path)

    def note_log(self) -> None:
        with closing(self.connect()) as connection:
            note_log(connection, self._path.resolve(), self._lock)

    def lost(self) -> str | None:
        try:
            identity = _identity(self._path)
        except OSError as error:
            return f"{self._path.name} has been moved or deleted while it was open ({error.strerror})"
        if identity != self._identity:
            return f"{self._path.name} has been replaced by another file while it was open"
        return None

    def connect(self, timeout: float = BUSY_TIMEOUT_SECONDS) -> sqlite3.Connection:
        """Never makes the file: where it has been moved, an empty one in its place would look like data lost."""
        connection = sqlite3.connect(
            f"file:{quote(str(self._path))}?mode=rw",
            uri=True,
            timeout=timeout,
            check_same_thread=False,
            cached_statements=256,
        )
        if lost := self.lost():
            connection.close()
            raise sqlite3.OperationalError(lost)
        return connection


def _identity(path: Path) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino


def _sqlite_engine(url: URL, file: DatabaseFile, begin: str, cache: int) -> Engine:
    engine = create_engine(
        url,
        creator=file.connect,
        hide_parameters=True,  # an error's text gets into logs, and parameters hold what callers sent
        poolclass=QueuePool,
        pool_size=READERS + SEARCHERS,
        max_overflow=2,
        # the connection used last has the pages and statements at hand that will be asked for next
        pool_use_lifo=True,
    )

    @event.listens_for(engine, "connect")
    def configure(connection: sqlite3.Connection, _record: Any) -> None:
        connection.isolation_level = None  # the driver's own BEGIN comes too late and is never IMMEDIATE
        for pragma in (
            "journal_mode=WAL",
            # NORMAL may lose the last commits with the power; an accepted call was promised
            "synchronous=FULL",
            "foreign_keys=ON",
            # a checkpoint inside a commit is what callers would wait for; see checkpoint.py
            "wal_autocheckpoint=0",
            "journal_size_limit=67108864",
            "temp_store=MEMORY",
            f"cache_size=-{cache}",
        ):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def start(connection: Connection) -> None:
        with in_the_driver(connection, begin) as driver:
            driver.execute(begin)

    return engine


_READING = ("SET default_transaction_read_only = on", "SET statement_timeout = '20s'")
_WRITING = (
    # A stopped process or a lost lock would make callers wait: a 503 ends that.
    "SET statement_timeout = '10s'",
    f"SET lock_timeout = '{BUSY_TIMEOUT_SECONDS:.0f}s'",
    "SET idle_in_transaction_session_timeout = '30s'",
    # An accepted call was promised to be on disk, whatever the server's own setting says.
    "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'",
    # The number under which this connection counts calls. The lock keeps it ours: no two processes wait for
    # one row.
    _OWN_SHARD := f"""SELECT coalesce((SELECT n FROM generate_series(0, {SHARDS - 1}) n
        WHERE pg_try_advisory_lock({SHARD_LOCK}, n) LIMIT 1), {SHARDS} + pg_backend_pid())""",
)


def _postgres_engine(url: URL, size: int, greeting: tuple[str, ...]) -> Engine:
    engine = create_engine(
        url.set(drivername="postgresql+psycopg"),
        hide_parameters=True,
        use_native_hstore=False,  # to look for a type that no table has takes longer than the rest of connecting
        pool_size=size,
        max_overflow=0,
        pool_timeout=10,
        connect_args=dict(REACHING),
    )

    @event.listens_for(engine, "connect")
    def greet(connection: Any, record: Any) -> None:
        before, connection.autocommit = connection.autocommit, True
        for statement in greeting:
            result = connection.execute(statement)
            if statement is _OWN_SHARD:
                record.info["shard"] = int(result.fetchone()[0])
        connection.autocommit = before

    return engine
