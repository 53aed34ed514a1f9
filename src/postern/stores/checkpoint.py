"""SQLite's checkpoints, on a connection of their own: inside a commit they would be what the waiting callers wait for."""

import contextlib
import os
import sqlite3
import threading

WORTH_IT = 8 * 1024 * 1024
TOO_LARGE = 256 * 1024 * 1024


class Checkpoints:
    """Moves the write-ahead log into the database once it is worth it; blocks writers only when readers let it grow huge."""

    def __init__(self, path: str, every: float = 0.5) -> None:
        self._path = path
        self._every = every
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="checkpoints", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(10)

    def _run(self) -> None:
        connection: sqlite3.Connection | None = None
        while not self._stop.wait(self._every):
            try:
                size = os.stat(self._path + "-wal").st_size
                if size < WORTH_IT:
                    continue
                connection = connection or sqlite3.connect(self._path, timeout=1.0, check_same_thread=False)
                connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
                if size > TOO_LARGE:
                    # It keeps writers out for as long as it copies: only after the other one has copied what it could.
                    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            except (OSError, sqlite3.Error):  # a full disk or a lock: the next round tries again
                continue
        if connection is not None:
            with contextlib.suppress(sqlite3.Error):
                connection.close()
