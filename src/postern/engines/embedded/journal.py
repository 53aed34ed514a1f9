"""The embedded engine's journal: one SQLite file, and the one thread that writes it.

A *change* is a function that is given the open transaction. The changes that arrive while a commit is under
way share the next one, so that a hundred of them cost one fsync. A change that somebody waits for is never kept back to collect
more: only threads that are ready at that moment go first. The others go with the next of those, or soon. A
change counts, and its ``done`` is called, when it is on disk.
"""

import logging
import os
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct

from postern.left_log import note_log, put_left_log_aside
from postern.private_files import sync

log = logging.getLogger("postern.engine")

T = TypeVar("T")
JournalChange = Callable[[sqlite3.Connection], Any]

LARGEST_GROUP = 1_000
SOON = 0.01
"""Seconds that a change for which nobody waits is kept back, so that others share its commit."""
FIRST_RETRY, LONGEST_RETRY = 0.1, 2.0
VERSION = 3

SCHEMA = """
CREATE TABLE runs (
    seq INTEGER PRIMARY KEY,
    delivery TEXT NOT NULL,
    workflow TEXT NOT NULL,
    event TEXT NOT NULL,
    deadline REAL,        -- until when a caller waits for the answer, if one does
    started_at REAL NOT NULL,
    wake_at REAL,         -- asleep until then
    asleep_since REAL,    -- a time that is yet to come tells that the clock was set back
    blame INTEGER NOT NULL DEFAULT 0,  -- for engine processes that died while it worked, since its last step
    state TEXT,           -- completed, failed or cancelled; NULL while unfinished
    ended_at REAL,
    error TEXT NOT NULL DEFAULT '',
    UNIQUE (delivery, workflow)
);
CREATE INDEX runs_waiting ON runs (workflow, seq) WHERE state IS NULL AND wake_at IS NULL;
CREATE INDEX runs_asleep ON runs (workflow, wake_at) WHERE wake_at IS NOT NULL;
CREATE INDEX runs_ended ON runs (ended_at) WHERE ended_at IS NOT NULL;
CREATE TABLE steps (
    run INTEGER NOT NULL,
    position INTEGER NOT NULL,
    name TEXT NOT NULL,
    result TEXT,          -- as JSON
    error TEXT,           -- what StepFailed says
    seconds REAL NOT NULL,  -- how long it took; of a sleep, how long it was to be
    PRIMARY KEY (run, position)
) WITHOUT ROWID;
"""


class JournalUnavailable(Exception):
    """The file cannot be written or read now: what was wanted is not on disk."""


class JournalLost(JournalUnavailable):
    """The open file is not the one that lies in the folder any more: what is committed would be lost with it."""


class _Pending(Struct):
    change: JournalChange
    before_commit: Callable[[Any], None] | None
    done: Callable[[Any], None]
    insist: bool
    urgent: bool


class Journal:
    def __init__(
        self,
        file: Path,
        troubled: Callable[[str], None] = lambda _: None,
        group_over: Callable[[], None] = lambda: None,
        lost: Callable[[], None] = lambda: None,
    ) -> None:
        """``troubled`` is called with what is wrong with the file, and with an empty text when it works again;
        ``group_over`` is called when everybody whose change was in a commit knows; ``lost`` when the
        file is gone, after what can be saved of it has been."""
        self._file = file
        self._troubled = troubled
        self._group_over = group_over
        self._lost = lost
        self._trouble = ""
        self._queue: queue.SimpleQueue[_Pending | None] = queue.SimpleQueue()
        self._ended = False
        """True once ``close`` was called: no more changes come."""
        lock = file.with_suffix(".lock")
        if kept := put_left_log_aside(file, lock):
            log.warning("%s was replaced: the log of the earlier one is kept as %s", file.name, kept)
        # A commit that its process did not live to sync is read by the next one: a power cut must not take it then.
        with suppress(FileNotFoundError):
            sync(file.with_name(f"{file.name}-wal"))
        self._connection = _connect(file)
        try:
            _bring_up_to_date(self._connection)
        except BaseException:
            self._connection.close()
            raise
        self._files = {path: path.stat() for path in (file, file.with_name(f"{file.name}-wal"))}
        note_log(self._connection, file, lock)
        self._reader = _connect(file)
        self._reading = threading.Lock()
        self._thread = threading.Thread(target=self._write_all, name="journal", daemon=True)
        self._thread.start()

    def submit(
        self,
        change: Callable[[sqlite3.Connection], T],
        done: Callable[[Any], None] = lambda _: None,
        before_commit: Callable[[T], None] | None = None,
        *,
        insist: bool = True,
        urgent: bool = True,
    ) -> None:
        """Have the change made. ``done`` is called with its result, or the exception that it met, in the journal's thread.

        A change that *insists* is tried again until the file can be written; any other fails at once with
        ``JournalUnavailable``. ``before_commit`` hears the result when nothing but the commit is left to do. One that
        is not *urgent* goes with the next commit that somebody waits for, if there is one soon.
        """
        self._queue.put(_Pending(change, before_commit, done, insist, urgent))

    def write(self, change: Callable[[sqlite3.Connection], T]) -> T:
        return self.write_soon(change, urgent=True)()

    def write_soon(
        self, change: Callable[[sqlite3.Connection], T], *, urgent: bool = False
    ) -> Callable[[], T]:
        """Queues the change, and goes on. The returned function waits until it is on disk."""
        # A lock, not a Future: each step of each run waits here, and a Future's condition costs several times as much.
        finished = threading.Lock()
        finished.acquire()
        result: Any = None

        def done(what: Any) -> None:
            nonlocal result
            result = what
            finished.release()

        def wait() -> T:
            if not finished.acquire(blocking=False):
                if not urgent:
                    self.hurry()  # somebody waits for it now
                finished.acquire()
            if isinstance(result, BaseException):
                raise result
            made: T = result
            return made

        self.submit(change, done, urgent=urgent)
        return wait

    def hurry(self) -> None:
        """Have what was submitted so far written without waiting for company."""
        self.submit(lambda _: None)

    def read(self, query: str, values: Iterable[Any] = ()) -> list[Any]:
        """Runs a query on what is on disk now. Any thread may call it."""
        try:
            with self._reading:
                return self._reader.execute(query, tuple(values)).fetchall()
        except sqlite3.DatabaseError as error:
            raise JournalUnavailable(self._words(error)) from error

    def close(self, seconds: float = 10.0) -> None:
        self._queue.put(None)
        self._thread.join(seconds)

    # --- in the journal's own thread -------------------------------------------------------------------------

    def _write_all(self) -> None:
        left_over: list[_Pending] = []
        retry = FIRST_RETRY
        while not self._ended:
            if left_over:
                time.sleep(retry)
                retry = min(retry * 2, LONGEST_RETRY)
            left_over = self._commit(self._coming(left_over))
            if not left_over:
                retry = FIRST_RETRY
            self._group_over()
        self._connection.close()
        with self._reading:
            self._reader.close()

    def _coming(self, left_over: list[_Pending]) -> Iterator[_Pending]:
        """Yields the changes of the next commit as they come, until it is time to commit."""
        yield from left_over
        count, urgent, until = len(left_over), bool(left_over), 0.0
        looks = seen = 0
        most = LARGEST_GROUP + count
        while count < most:
            try:
                if not count:
                    another = self._queue.get()
                    until = time.monotonic() + SOON
                elif urgent or (left := until - time.monotonic()) <= 0:
                    another = self._queue.get_nowait()
                else:
                    another = self._queue.get(timeout=left)
            except queue.Empty:
                if not urgent or count == seen or looks == MOST_LOOKS:
                    return
                # Who was told of the last commit is often about to bring the next change.
                looks, seen = looks + 1, count
                others_first()
                continue
            if another is None:
                self._ended = True
                return
            count += 1
            urgent = urgent or another.urgent
            yield another

    def _commit(self, coming: Iterable[_Pending]) -> list[_Pending]:
        """One transaction for all of them. The ones that are left to be tried again."""
        group: list[_Pending] = []
        try:
            results = self._transact(coming, group)
        except JournalUnavailable as trouble:
            self._report_trouble(str(trouble))
            group += self._waiting()  # nor can these be made now
            for pending in group:
                if not pending.insist:
                    _report(pending, trouble)
            if isinstance(trouble, JournalLost):
                self._group_over()
                self._save()
                self._lost()
            return [pending for pending in group if pending.insist]
        except Exception as error:  # a defect in one change must not fail its neighbours
            if len(group) == 1:
                _report(group[0], error)
                return []
            return [remaining for pending in group for remaining in self._commit([pending])]
        if group:
            self._report_trouble("")
        for pending, result in zip(group, results, strict=True):
            _report(pending, result)
        return []

    def _transact(self, coming: Iterable[_Pending], group: list[_Pending]) -> list[Any]:
        """Each change is made when it comes, so that nothing but the commit is left to do when somebody waits for it.
        ``group`` gets those that came."""
        connection, results = self._connection, []
        try:
            for pending in coming:
                group.append(pending)
                if len(group) == 1:
                    connection.execute("BEGIN IMMEDIATE")
                result = pending.change(connection)
                results.append(result)
                if pending.before_commit is not None:
                    pending.before_commit(result)
            if group:
                connection.execute("COMMIT")
                self._look_whether_lost()
        except BaseException as error:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            if isinstance(error, sqlite3.DatabaseError) and not isinstance(
                error, sqlite3.IntegrityError | sqlite3.ProgrammingError | sqlite3.DataError
            ):
                raise JournalUnavailable(self._words(error)) from error
            raise
        return results

    def _waiting(self) -> list[_Pending]:
        """Takes the submitted changes that are in no group yet."""
        changes: list[_Pending] = []
        with suppress(queue.Empty):
            while len(changes) < LARGEST_GROUP:
                another = self._queue.get_nowait()
                if another is None:
                    self._ended = True
                    break
                changes.append(another)
        return changes

    def _look_whether_lost(self) -> None:
        """Raises ``JournalLost`` if the file is another one. Called after each commit, before its changes are
        reported: it costs two microseconds."""
        for path, known in self._files.items():
            try:
                there = path.stat()
            except FileNotFoundError:
                raise JournalLost(
                    f"{path.name} was deleted or moved away while the engine had it open"
                ) from None
            except OSError:
                continue  # it cannot be looked at now
            if (there.st_ino, there.st_dev) != (known.st_ino, known.st_dev):
                raise JournalLost(f"{path.name} was replaced while the engine had it open")

    def _save(self) -> None:
        """Writes the file anew from the open one, unless another file has taken its place."""
        log_file = next(path for path in self._files if path != self._file)
        try:
            if self._file.exists() and os.path.samestat(self._file.stat(), self._files[self._file]):
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                return
            if self._file.exists():
                log.error("%s was replaced; the content of the open file is lost", self._file.name)
                return
            copy = self._file.with_name(f"{self._file.name}.saved")
            copy.unlink(missing_ok=True)
            self._connection.execute("VACUUM INTO ?", [str(copy)])
            copy.chmod(0o600)
            # A log of the old file would be taken for the new one's.
            log_file.unlink(missing_ok=True)
            copy.rename(self._file)
            log.warning("%s was written anew from the open file; nothing is lost", self._file.name)
        except (OSError, sqlite3.Error) as error:
            log.error("what %s held could not be saved: %s", self._file.name, error)

    def _words(self, error: Exception) -> str:
        return f"{self._file.name}: {error}"

    def _report_trouble(self, trouble: str) -> None:
        """Once when it begins, once when it is over: a full disk must not be filled with lines about it."""
        if trouble == self._trouble:
            return
        if trouble:
            log.error("the journal cannot be written: %s", trouble)
        else:
            log.info("the journal can be written again")
        self._trouble = trouble
        self._troubled(trouble)


def _report(pending: _Pending, result: Any) -> None:
    try:
        pending.done(result)
    except Exception:  # one failing receiver must not keep the result from the others
        log.exception("a change was made and its end could not be reported")


def _connect(file: Path) -> sqlite3.Connection:
    # It holds payloads; SQLite gives its side files the same mode. A file that is there must not be opened here: to
    # close it again would take away the locks that this process has on it, and the next other process to close the
    # database would delete its log.
    with suppress(FileExistsError):
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    connection = sqlite3.connect(file, isolation_level=None, check_same_thread=False, timeout=5.0)
    # FULL: a commit is on disk when it returns. With less, a run that had ended would run again after a power cut.
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "cache_size=-2000", "wal_autocheckpoint=2000"):
        connection.execute(f"PRAGMA {pragma}").close()
    return connection


def _bring_up_to_date(connection: sqlite3.Connection) -> None:
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > VERSION:
        raise JournalUnavailable(f"engine.db was written by a newer version of Postern (format {version})")
    if 0 < version < VERSION:
        raise JournalUnavailable(
            f"engine.db has format {version}, of a version before the first release: let its runs end with that version, or move it away"
        )
    if version < VERSION:
        connection.execute("BEGIN IMMEDIATE")
        for statement in SCHEMA.split(";\n"):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version={VERSION}")
        connection.execute("COMMIT")


MOST_LOOKS = 4
"""The number of times that a thread looks for more before it stops. One of them may hold the interpreter for long."""

others_first: Callable[[], None] = getattr(os, "sched_yield", lambda: None)
"""Let go of the interpreter and the core. Waits for nobody: it comes back at once where no other thread is ready."""
