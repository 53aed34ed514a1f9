"""A database as the migrations leave it. They take a good part of what most tests take, and wait for the disk thirty
times; a copy of what they have made once costs a tenth."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from postern.stores.secrets import keys
from postern.stores.secrets.vault import Vault, key_from_file
from postern.stores.sql import schema
from postern.stores.sql.database import Database


def fresh_database(file: Path) -> Path:
    """Closed to others, as the program would make it. Where one is already, it stays."""
    if not file.exists():
        _write(file, _migrated())
    return file


def fresh_data(folder: Path) -> None:
    """A data folder as the first start leaves it, with a key that the database knows. Where one is already, it stays."""
    if not (folder / "postern.db").exists() and not (folder / "secret.key").exists():
        database, key = _started()
        _write(folder / "secret.key", key)
        _write(folder / "postern.db", database)
        _copies[folder] = "sqlite", _files(folder)


def fresh_key(folder: Path) -> None:
    """The same for a database on Postgres that is a new copy of one after ``first_start``, and is opened before anybody else
    has asked it something."""
    _, key = _started()
    _write(folder / "secret.key", key)
    _copies[folder] = "postgres", _files(folder)


def first_start(url: str) -> None:
    """The database, which has its tables, knows the key from then on."""
    _, key = _started()
    database = Database(url)
    keys.check(database, Vault([key.decode().strip()]))
    database.close()


@contextmanager
def looked_through_once(folder: Path) -> Iterator[None]:
    """Skips checks while a gateway opens fresh data. Data that nobody has touched is a copy, to the byte, of what
    this process has opened before: that its tables are those of the code, and that the key is theirs, is known."""
    # For the first that opens it. Who comes later looks at what that one has done.
    kind, written = _copies.pop(folder, ("", {}))
    untouched = bool(kind) and written == _files(folder)
    asked = [getattr(module, name) for module, name in _LOOKING]
    if untouched and kind in _looked_through:
        for module, name in _LOOKING:
            setattr(module, name, lambda *_: None)
    try:
        yield
        if untouched:
            _looked_through.add(kind)
    finally:
        for (module, name), one in zip(_LOOKING, asked, strict=True):
            setattr(module, name, one)


_LOOKING = ((schema, "migrate"), (schema, "verify"), (keys, "check"))
_looked_through: set[str] = set()
_copies: dict[Path, tuple[str, dict[str, tuple[int, int, int]]]] = {}
"""The files as they were written."""


def _files(folder: Path) -> dict[str, tuple[int, int, int]]:
    return {
        file.name: (found.st_ino, found.st_size, found.st_mtime_ns)
        for file in os.scandir(folder)
        if (found := file.stat())
    }


def _write(file: Path, content: bytes) -> None:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with open(os.open(file, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as new:
        new.write(content)


@cache
def _migrated() -> bytes:
    with TemporaryDirectory() as folder:
        file = Path(folder, "postern.db")
        database = Database(f"sqlite:///{file}")
        schema.migrate(database)
        database.close()
        return file.read_bytes()


@cache
def _started() -> tuple[bytes, bytes]:
    with TemporaryDirectory() as folder:
        file, key = fresh_database(Path(folder, "postern.db")), Path(folder, "secret.key")
        database = Database(f"sqlite:///{file}")
        keys.check(database, Vault([key_from_file(key)]))
        database.close()
        return file.read_bytes(), key.read_bytes()
