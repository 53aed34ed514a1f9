"""A SQLite database as the migrations leave it. They take a good part of what most tests take, and wait for the disk thirty
times; a copy of what they have made once costs a tenth."""

import os
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from postern.stores.sql.database import Database
from postern.stores.sql.schema import migrate


def fresh_database(file: Path) -> Path:
    """Closed to others, as the program would make it. Where one is already, it stays."""
    if not file.exists():
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(os.open(file, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as new:
            new.write(_migrated())
    return file


@cache
def _migrated() -> bytes:
    with TemporaryDirectory() as folder:
        file = Path(folder, "postern.db")
        database = Database(f"sqlite:///{file}")
        migrate(database)
        database.close()
        return file.read_bytes()
