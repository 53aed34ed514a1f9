"""SQLite's log belongs to the file that it was written for. Beside another one, a backup that was put in its place for example,
it would be applied to that all the same, and damage it. The lock file says which two belong together."""

import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from urllib.parse import quote


class Damaged(Exception):
    """The file that was put in the place of another one cannot be used."""


def note_log(database: Path, lock: Path) -> None:
    """Notes that this log belongs to this database. To be called while the database is open, and only by the process
    that holds the lock: nobody else keeps it open for long."""
    with suppress(OSError), open(lock, "r+") as file:
        file.truncate()
        file.write(" ".join(map(_identity, (database, _log_of(database)))))


def put_left_log_aside(database: Path, lock: Path) -> str | None:
    """Moves a log aside that belongs to another file, and returns its new name. To be called before the database is
    opened; the file is checked first, without that log. Raises ``Damaged``."""
    log = _log_of(database)
    try:
        own, own_log = lock.read_text().split()
        # Where both are others, they were copied together.
        if _identity(log) != own_log or _identity(database) == own:
            return None
    except (OSError, ValueError):
        return None
    try:
        uri = f"file:{quote(str(database))}?mode=ro&immutable=1"
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.Error as error:
        found = str(error)
    if found != "ok":
        raise Damaged(
            f"{database.name} was put in the place of another one and is damaged: {' '.join(found.split())}. "
            "Put a whole one there"
        )
    kept = log.with_name(f"{log.name}.left")
    log.replace(kept)
    database.with_name(f"{database.name}-shm").unlink(missing_ok=True)
    return kept.name


def _log_of(database: Path) -> Path:
    return database.with_name(f"{database.name}-wal")


def _identity(path: Path) -> str:
    found = os.stat(path)
    return f"{found.st_dev}:{found.st_ino}"
