"""What a backup is made of, and where it lies in a gateway's data folder."""

from pathlib import Path

from sqlalchemy.engine import make_url

from postern.settings import Settings

FORMAT = 1
MANIFEST, DATABASE, JOURNAL, KEYS, SEALED_KEYS = (
    "manifest.json",
    "postern.db",
    "engine.db",
    "keys",
    "keys.sealed",
)
SIDES = ("", "-wal", "-shm", "-journal")
"""What SQLite puts beside a database, and takes for a part of it."""


class BackupFailed(Exception):
    """One sentence; nothing was written, or nothing was changed."""


def sqlite_file(settings: Settings) -> Path:
    if not settings.is_sqlite:
        raise BackupFailed("a Postgres database is backed up with Postgres' own tools: see docs/backup.md")
    return Path(make_url(settings.database).database or "")
