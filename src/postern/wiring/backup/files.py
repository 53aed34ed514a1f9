"""Files that are whole and on disk, or not there."""

import hashlib
import io
import os
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import IO


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
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
