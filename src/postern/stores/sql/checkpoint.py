"""SQLite's checkpoints, on a connection of their own: inside a commit, callers would wait for them."""

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Callable

WORTH_IT = 8 * 1024 * 1024
TOO_LARGE = 256 * 1024 * 1024
QUICK = 0.02
MOST_PASSES = 8


class Checkpoints:
    """Moves the write-ahead log into the database once it is worth it, so that the log begins again at its
    start.

    Two steps. A thread copies nearly everything while commits go on; with that alone the log would only grow,
    for there is always another commit before it is done. So the writer, between two of its commits, copies
    the rest, once that is so little that no caller notices.
    """

    def __init__(self, path: str, connect: Callable[[float], sqlite3.Connection], every: float = 0.5) -> None:
        self._path = path
        self._connect = connect
        self._every = every
        self._stop = threading.Event()
        self._nearly = threading.Event()
        """The thread has done its part; the connection is the writer's until it has done the other."""
        self._connection: sqlite3.Connection | None = None
        self._thread = threading.Thread(target=self._run, name="checkpoints", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(10)
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()

    def between_commits(self) -> None:
        """Called in the writer's thread."""
        if self._nearly.is_set():
            with contextlib.suppress(sqlite3.Error):
                self._checkpoint("PASSIVE")
            self._nearly.clear()

    def _run(self) -> None:
        while not self._stop.wait(self._every):
            if self._nearly.is_set():
                continue
            try:
                size = os.stat(self._path + "-wal").st_size
                if size < WORTH_IT:
                    continue
                # Each pass leaves what was written during it: as long as the disk keeps up, less each time.
                if any(self._checkpoint("PASSIVE") < QUICK for _ in range(MOST_PASSES)):
                    self._nearly.set()
                elif size > TOO_LARGE:
                    # A slow disk. This keeps writers out for as long as it copies, but the log must not fill
                    # the disk.
                    self._checkpoint("TRUNCATE")
            except (OSError, sqlite3.Error):  # a full disk or a lock: the next round tries again
                continue

    def _checkpoint(self, how: str) -> float:
        """Returns how many seconds it took."""
        if self._connection is None:
            self._connection = self._connect(1.0)
        began = time.perf_counter()
        self._connection.execute(f"PRAGMA wal_checkpoint({how})").fetchall()
        return time.perf_counter() - began
