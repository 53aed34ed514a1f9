"""SQLite's log belongs to the file that it was written for. Beside another one, a backup that was put in its place for example,
it would be applied to that all the same, and damage it. The lock file says which two belong together: by their numbers in
the file system, and by a mark in the database that is new at each start, because a copy may get the number of the file before."""

import os
import secrets
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from urllib.parse import quote

_MARK, _LOG_NUMBER = 68, 16
"""Where SQLite has the ``application_id`` in the file, and the log's number in the log."""
_MOST_LOGS = 2**20
"""SQLite gives a log a random number, and counts it up each time that it begins the log anew."""


class Damaged(Exception):
    """The file that was put in the place of another one cannot be used."""


def note_log(connection: sqlite3.Connection, database: Path, lock: Path) -> None:
    """Gives the database a new mark, and notes that this log belongs to it. To be called before anything else is written, and
    only by the process that holds the lock. Where the disk is full, all stays as it was."""
    mark = str(secrets.randbits(31))
    with suppress(OSError, sqlite3.Error):
        for statement in (
            "PRAGMA wal_checkpoint(PASSIVE)",
            f"PRAGMA application_id={mark}",
            "PRAGMA wal_checkpoint(PASSIVE)",
        ):
            connection.execute(statement).close()
            # Both count until the new one has come from the log into the file. That may be late, where others read.
            marks = {_asked(database, "PRAGMA application_id"), mark}
            number = _number(_log_of(database), _LOG_NUMBER)
            with open(lock, "r+") as file:
                file.truncate()
                print(_identity(database), _identity(_log_of(database)), number, *marks, file=file)
                file.flush()
                os.fsync(file.fileno())


def put_left_log_aside(database: Path, lock: Path) -> str | None:
    """Moves a log aside that belongs to another file, and returns its new name. To be called before the database is
    opened; the file is checked first, without that log. Raises ``Damaged``."""
    log = _log_of(database)
    try:
        own, own_log, number, *marks = lock.read_text().split()
        # Where both are others, they were copied together.
        moved = _identity(log) == own_log and _identity(database) != own
        is_own_log = _number(log, _LOG_NUMBER) - int(number) in range(_MOST_LOGS)
        if not moved and not (is_own_log and str(_number(database, _MARK)) not in marks):
            return None
    except (OSError, ValueError):
        return None
    try:
        check = _asked(database, "PRAGMA quick_check(1)")
    except sqlite3.Error as error:
        check = str(error)
    if check != "ok":
        raise Damaged(
            f"{database.name} was put in the place of another one and is damaged: {' '.join(check.split())}. "
            "Put a whole one there"
        )
    kept = log.with_name(f"{log.name}.left")
    log.replace(kept)
    database.with_name(f"{database.name}-shm").unlink(missing_ok=True)
    return kept.name


def _log_of(database: Path) -> Path:
    return database.with_name(f"{database.name}-wal")


def _identity(path: Path) -> str:
    status = os.stat(path)
    return f"{status.st_dev}:{status.st_ino}"


def _number(file: Path, place: int) -> int:
    with file.open("rb") as opened:
        return int.from_bytes(opened.read(place + 4)[place:])


def _asked(database: Path, question: str) -> str:
    """Asks the file without its log."""
    uri = f"file:{quote(str(database))}?mode=ro&immutable=1"
    with closing(sqlite3.connect(uri, uri=True)) as connection:
        return str(connection.execute(question).fetchone()[0])
