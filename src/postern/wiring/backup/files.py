"""Files that are whole and on disk, or not there."""

import fcntl
import hashlib
import io
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO

from postern.private_files import sync


def quick_check(connection: sqlite3.Connection) -> str:
    """``ok``, or what is wrong first."""
    lines = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0]).splitlines()
    return lines[-1] if lines else "its pages are damaged"


def write_private(file: Path, content: IO[bytes] | str) -> str:
    """The SHA-256 of what was written. On disk when this returns."""
    file.unlink(missing_ok=True)
    digest = hashlib.sha256()
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
        source = io.BytesIO(content.encode()) if isinstance(content, str) else content
        while chunk := source.read(1024 * 1024):
            digest.update(chunk)
            stream.write(chunk)
        stream.flush()
        os.fsync(stream.fileno())
    return digest.hexdigest()


def sync_folder(folder: Path) -> None:
    with suppress(OSError):  # some file systems cannot
        sync(folder)


_BEGINNING, _RANDOM = ".postern-backup-", "????????"


@contextmanager
def folder_of_its_own(parent: Path) -> Iterator[Path]:
    """Makes a folder in which a backup is put together. First it removes the folder of a backup that was killed: it
    is as large as the database, and the keys may be in it."""
    for left in parent.glob(f"{_BEGINNING}{_RANDOM}"):
        with suppress(OSError), _locked(left, fcntl.LOCK_NB):
            if any(left.iterdir()):  # else it may be just being made
                shutil.rmtree(left)
    with tempfile.TemporaryDirectory(prefix=_BEGINNING, dir=parent) as name, ExitStack() as ending:
        with suppress(OSError):  # where a file system knows no locks, nobody takes it for left either
            ending.enter_context(_locked(Path(name)))
        yield Path(name)


@contextmanager
def _locked(folder: Path, or_not: int = 0) -> Iterator[None]:
    """Locks the folder; with ``LOCK_NB`` raises ``OSError`` if another process holds the lock. The system frees it
    when the process ends in any way."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | or_not)
        yield
    finally:
        os.close(descriptor)
