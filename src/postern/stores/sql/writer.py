"""The one writer: everything that is waiting shares the next transaction, and hears when it is on disk.

It never sleeps to collect: while one commit is under way the next one's work gathers. Group commit is what
makes a durable answer cheap (one fsync for a hundred calls), and one writer per process is what keeps SQLite
from contending.

The event loop gathers, a thread of the writer's own commits. A batch is handed over when the loop has gone round
without bringing more, or a few times: callers who were just answered have often sent their next call by then, and a
thread that took what is there as soon as it could would commit twice as often for half as many. No round waits
for anything: each takes what is ready.
"""

import asyncio
import math
import queue
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from msgspec import Struct
from sqlalchemy import Connection
from sqlalchemy.exc import (
    DataError,
    DBAPIError,
    InterfaceError,
    InternalError,
    OperationalError,
    SQLAlchemyError,
)

from postern.core.history.invocation import Entry, Receipt, StoreUnavailable
from postern.observe.changes import may_have_changed
from postern.observe.logs import log
from postern.stores.sql.database import Database, value_not_storable


class CommitUnknown(StoreUnavailable):
    """The connection was lost after the commit was sent."""


T = TypeVar("T")
Item = TypeVar("Item")
Job = Callable[[Connection], Any]


class Share(Struct, frozen=True):
    """An item of work that costs little when it is done together with all others of its kind."""

    run: Callable[[Connection, list[Any]], list[Any]]
    """Returns the result of each item."""
    item: Any


Work = Entry | Share | Job
WhenWritten = Callable[[Any], None]
"""Called in the event loop with the result, or with the exception that is it."""

MOST_WAITING = 20_000
MOST_BYTES = 256 * 1024 * 1024
LARGEST_BATCH = 1_000
MOST_ROUNDS = 4
"""Rounds of the event loop in which what is ready may still come into a batch."""
SOON = 0.01
"""Seconds that work which is not urgent is kept back, so that others share its commit."""
ATTEMPTS = 3
LOG_EVERY = 10.0
"""A full disk refuses dozens of commits a second, and the log may be on that disk."""
QUIET_FOR = 10.0
"""Seconds without a refused commit after which the log says that the trouble is over."""


class Commits:
    """How the last commits went. Written by the writer's thread, read by whoever asks whether calls can be stored."""

    def __init__(self) -> None:
        self.since: float | None = None
        """When the current commit began, or None."""
        self.succeeded_at = -math.inf
        self.trouble: str | None = None
        """Why the last commit was refused, or None."""
        self.call_trouble: str | None = None
        """The same for the last one that had calls in it, where calls alone may have met it."""
        self.call_failed_at = -math.inf
        self._refused = 0
        """Since it was last said that commits are taken again."""
        self._refused_at = -math.inf
        self._logged_at = -math.inf

    def succeeded(self, calls: int) -> None:
        self.succeeded_at = now = time.monotonic()
        self.trouble = None
        if calls:
            self.call_trouble = None
        # On a full disk a small commit still fits between two that do not.
        if self._refused and self.call_trouble is None and now - self._refused_at >= QUIET_FOR:
            log.info("the store takes commits again", refused=self._refused)
            self._refused, self._logged_at = 0, -math.inf

    def refused(self, error: str, calls: int, away: bool) -> None:
        """``away``: the database was, so that a trial that goes well is as good as a call."""
        now = time.monotonic()
        self.trouble = error
        self._refused += 1
        self._refused_at = now
        if calls and not away:
            self.call_trouble, self.call_failed_at = error, now
        if now - self._logged_at >= LOG_EVERY:
            self._logged_at = now
            log.error("the store refused a commit", error=error, calls=calls, refused=self._refused)


class Writer:
    def __init__(
        self,
        database: Database,
        record_all: Callable[[Connection, list[Entry]], list[Receipt]],
        between_commits: Callable[[], None] | None,
    ) -> None:
        self._database = database
        self._record_all = record_all
        self._between_commits = between_commits
        self.commits = Commits()
        self._gathered: list[tuple[Work, WhenWritten]] = []
        self._at_work = False
        """The thread has a batch, or will have one when the loop has gone round."""
        self._handed_over: queue.SimpleQueue[list[tuple[Work, WhenWritten]] | None] = queue.SimpleQueue()
        self.waiting = 0
        self._bytes = 0
        self._connection: Connection | None = None
        """The thread's own, kept from commit to commit; given back as soon as anything goes wrong."""
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closing = False
        self._all_answered = asyncio.Event()

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    def record(self, entry: Entry, on_stored: Callable[[Receipt | StoreUnavailable], None]) -> None:
        """Tells when the entry is on disk; or that it is not, and then nothing of it is."""
        size = entry.size = _size(entry)
        if self.waiting >= MOST_WAITING or self._bytes + size > MOST_BYTES or self._closing:
            on_stored(StoreUnavailable("too many calls are waiting to be stored"))
            return
        self._bytes += size
        self._gather(entry, on_stored)

    async def write(self, job: Callable[[Connection], T]) -> T:
        """Does a job in the next transaction. An exception of its own undoes it alone, and is raised here."""
        if self._closing:
            raise StoreUnavailable("the store is closing")
        try:
            result: T = await self._submit(job)
        except CommitUnknown:
            may_have_changed.set(True)
            raise
        may_have_changed.set(True)
        return result

    def share(
        self, run: Callable[[Connection, list[Item]], list[T]], item: Item, urgent: bool = True
    ) -> "asyncio.Future[T]":
        """Like ``write``, for what many do at once: ``run`` is given every item that waits, and says what came of each. Items
        that are not urgent go with the next commit that somebody waits for, if there is one soon."""
        if self._closing:
            raise StoreUnavailable("the store is closing")
        return self._submit(Share(run, item), urgent)

    def _submit(self, work: Work, urgent: bool = True) -> "asyncio.Future[Any]":
        assert self._loop is not None, "the writer has not been started"
        future: asyncio.Future[Any] = self._loop.create_future()
        self._gather(work, partial(_settle, future), urgent)
        return future

    def _gather(self, work: Work, done: WhenWritten, urgent: bool = True) -> None:
        self.waiting += 1
        self._gathered.append((work, done))
        if urgent:
            self._hand_over_soon()
        elif len(self._gathered) == 1 and self._loop is not None:
            self._loop.call_later(SOON, self._hand_over_soon)

    def _hand_over_soon(self) -> None:
        if not self._at_work and self._gathered:
            assert self._loop is not None, "the writer has not been started"
            self._at_work = True
            self._loop.call_soon(self._hand_over)

    def _hand_over(self, before: int = 0, rounds: int = 0) -> None:
        assert self._loop is not None, "the writer has not been started"
        gathered = len(self._gathered)
        if gathered > before and rounds < MOST_ROUNDS:
            self._loop.call_soon(self._hand_over, gathered, rounds + 1)
            return
        batch, self._gathered = self._gathered[:LARGEST_BATCH], self._gathered[LARGEST_BATCH:]
        self._handed_over.put(batch)

    def _done(self, batch: list[tuple[Work, WhenWritten]], results: list[Any]) -> None:
        self._at_work = False
        self.waiting -= len(batch)
        for (work, done), result in zip(batch, results, strict=True):
            if isinstance(work, Entry):
                self._bytes -= work.size
            try:
                done(result)
            except Exception:  # one that cannot hear it must not keep the others from hearing
                log.exception("a write was done and its end could not be reported")
        self._hand_over_soon()
        if not self.waiting:
            self._all_answered.set()

    async def close(self) -> None:
        """Writes what is waiting, then ends."""
        self._closing = True
        self._all_answered.clear()
        if self.waiting:
            with suppress(TimeoutError):  # a store that hangs must not keep the process from ending
                await asyncio.wait_for(self._all_answered.wait(), 30)
        self._handed_over.put(None)
        await asyncio.get_running_loop().run_in_executor(None, self._thread.join, 30)

    # --- in the writer's thread --------------------------------------------------------------------------------------

    def _run(self) -> None:
        while (batch := self._handed_over.get()) is not None:
            self.commits.since = time.monotonic()
            results = self._commit([work for work, _ in batch])
            self.commits.since = None
            assert self._loop is not None
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                self._loop.call_soon_threadsafe(self._done, batch, results)
            if self._between_commits is not None:
                self._between_commits()
        self._give_back()

    def _commit(self, works: list[Work]) -> list[Any]:
        """One transaction for all. If it fails for a reason that one of them may be, each gets one of its own."""
        try:
            return self._transact(works)
        except StoreUnavailable as error:
            return [error] * len(works)
        except Exception as error:  # an entry no store can take must not fail its neighbours
            if len(works) == 1:
                log.error("a write failed", error=str(error), exc_info=not isinstance(error, SQLAlchemyError))
                # Whatever it was, the call is not stored: its sender hears 503 and sends it again.
                return [StoreUnavailable(type(error).__name__)]
            return [result for work in works for result in self._commit([work])]

    def _transact(self, works: list[Work]) -> list[Any]:
        calls = sum(isinstance(work, Entry) for work in works)
        for attempt in range(1, ATTEMPTS + 1):
            connected = committing = False
            try:
                connection = self._connected()
                connected = True
                with connection.begin() as transaction:
                    results = self._work(connection, works)
                    committing = True
                    transaction.commit()
            except DBAPIError as error:
                self._give_back()
                # Once the commit was sent nobody knows what became of it; before that, nothing has happened.
                if not committing and attempt < ATTEMPTS and _is_worth_another_try(error):
                    continue
                if _is_store_trouble(error):
                    away = not connected or self._database.lost() is not None
                    self.commits.refused(str(error.orig), calls, away)
                    # SQLite undoes what it could not write to the end.
                    unknown = committing and error.connection_invalidated
                    raise (CommitUnknown if unknown else StoreUnavailable)(str(error.orig)) from error
                raise
            except BaseException:
                self._give_back()
                raise
            # After the commit: nobody may hear of one that went into a file which is not there any more.
            if lost := self._database.lost():
                self.commits.refused(lost, calls, away=True)
                raise StoreUnavailable(lost)
            self.commits.succeeded(calls)
            return results
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _connected(self) -> Connection:
        if self._connection is None:
            self._connection = self._database.writer.connect()
        return self._connection

    def _give_back(self) -> None:
        """The pool makes it ready again, or takes another in its place."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _work(self, connection: Connection, works: list[Work]) -> list[Any]:
        """Calls first, then what is done together, then each job in a savepoint of its own."""
        entries: dict[int, Entry] = {}
        shares: dict[Any, dict[int, Any]] = {}
        jobs: dict[int, Job] = {}
        for place, work in enumerate(works):
            if isinstance(work, Entry):
                entries[place] = work
            elif isinstance(work, Share):
                shares.setdefault(work.run, {})[place] = work.item
            else:
                jobs[place] = work
        results: dict[int, Any] = {}
        if entries:
            results.update(zip(entries, self._record_all(connection, list(entries.values())), strict=True))
        for run, items in shares.items():
            results.update(zip(items, run(connection, list(items.values())), strict=True))
        for place, job in jobs.items():
            results[place] = self._nested(connection, job)
        return [results[place] for place in range(len(works))]

    @staticmethod
    def _nested(connection: Connection, job: Job) -> Any:
        savepoint = connection.begin_nested()
        try:
            result = job(connection)
        except DataError:
            savepoint.rollback()
            return value_not_storable()
        except DBAPIError as error:
            if _is_store_trouble(error) or _collided(error):
                raise
            savepoint.rollback()
            return error
        except Exception as error:  # the job's own refusal: it alone is undone
            savepoint.rollback()
            return error
        savepoint.commit()
        return result


def _size(entry: Entry) -> int:
    """The memory that an entry takes while it waits."""
    size = len(entry.invocation.body or b"") + 2000
    return size + sum(map(_size, entry.others)) if entry.others else size


def _settle(future: "asyncio.Future[Any]", result: Any) -> None:
    if future.done():
        return
    if isinstance(result, BaseException):
        future.set_exception(result)
    else:
        future.set_result(result)


def _is_store_trouble(error: DBAPIError) -> bool:
    """Full, locked, read-only, damaged, gone: trouble of the store itself, which the next call may not meet."""
    return (
        error.connection_invalidated
        # SQLite's driver has no class of its own for what is damaged.
        or getattr(error.orig, "sqlite_errorcode", 0) & 0xFF
        in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
        or (isinstance(error, OperationalError | InterfaceError | InternalError) and not _collided(error))
    )


def _is_worth_another_try(error: DBAPIError) -> bool:
    """The server was restarted and this connection did not know yet, or two processes collided."""
    return error.connection_invalidated or _collided(error)


def _collided(error: DBAPIError) -> bool:
    """Two processes held what the other one wanted: alone, each gets through."""
    return getattr(error.orig, "sqlstate", None) in ("40P01", "40001")
