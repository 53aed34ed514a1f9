"""A backup of everything in one file, made while the gateway serves.

The database is copied first and the engine's journal second. Deliveries that the database calls started are then in the
journal: the other way round, a call that was handed to the engine between the two copies would be called
started by the one and be unknown to the other, and its workflow would never run. The journal may have
in addition runs that were begun between the two copies; they are taken out again, for the calls that they
belong to are not in the database either.
"""

import hashlib
import io
import os
import sqlite3
import tarfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec

from postern import __version__
from postern.settings import Settings
from postern.surfaces.cli.gateway.machine import Manifest
from postern.usecases.answers import iso
from postern.wiring.backup.contents import (
    DATABASE,
    FORMAT,
    JOURNAL,
    KEYS,
    MANIFEST,
    SEALED_KEYS,
    BackupFailed,
    is_own,
    sqlite_file,
)
from postern.wiring.backup.files import folder_of_its_own, quick_check, sync_folder
from postern.wiring.backup.keys import has_one_of, keys_in_force, other_keys, sealed_with


def back_up(
    settings: Settings, file: Path, *, with_keys: bool, passphrase: str | None, replace: bool
) -> Manifest:
    """``passphrase`` seals the keys. Raises ``BackupFailed``."""
    source = sqlite_file(settings)
    if not source.exists():
        raise BackupFailed(f"There is no database {source}. POSTERN_DATA_DIR says where it is.")
    place = _place_for(file, settings, replace)
    with_keys = with_keys or passphrase is not None
    keys = keys_in_force(settings) if with_keys else []
    if with_keys and not keys:
        raise BackupFailed(
            "there are no keys to put into it: POSTERN_SECRET_KEYS is not set, and there is no secret.key"
        )
    # Beside the file, which has the room for it or is the wrong place for a backup.
    with _written_to(place.parent), folder_of_its_own(place.parent) as folder:
        parts = {DATABASE: folder / DATABASE}
        journal = settings.data_dir / JOURNAL
        newest_run = _newest_run(journal)
        _copy(source, parts[DATABASE])
        if journal.exists():
            parts[JOURNAL] = folder / JOURNAL
            _copy(journal, parts[JOURNAL])
            _take_out_later_runs(parts[JOURNAL], parts[DATABASE], newest_run)
        if passphrase is not None:
            parts[SEALED_KEYS] = folder / SEALED_KEYS
            parts[SEALED_KEYS].write_bytes(sealed_with(",".join(keys).encode(), passphrase))
        elif with_keys:
            parts[KEYS] = folder / KEYS
            parts[KEYS].write_text(",".join(keys) + "\n")
        manifest = _manifest(parts)
        if with_keys and not has_one_of(keys, manifest):
            raise other_keys("database", "given here", keys, manifest, "is set for the gateway")
        _pack(manifest, parts, place)
    return manifest


def _place_for(file: Path, settings: Settings, replace: bool) -> Path:
    """Returns the file to write, where a link leads to. Refuses a folder, a device, and any file that the gateway
    itself needs, which may not even be there yet."""
    place = Path(os.path.realpath(file))  # not resolve(), which raises where links go round in a circle
    if is_own(settings, place):
        raise BackupFailed(f"{file} is a file of the gateway's own; give the backup another name")
    if place.is_dir():
        raise BackupFailed(f"{file} is a folder; name a file in it")
    if place.exists() and not place.is_file():
        raise BackupFailed(f"{file} is no ordinary file, and a backup cannot take its place")
    if place.exists() and not replace:
        raise BackupFailed(f"{file} is there already; --replace overwrites it")
    return place


@contextmanager
def _written_to(folder: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.DatabaseError, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise BackupFailed(f"{folder} cannot be written to: {reason}") from error


def _newest_run(journal: Path) -> int:
    if not journal.exists():
        return 0
    with _opened(journal) as connection:
        if not _has_runs(connection):
            return 0
        return int(connection.execute("SELECT coalesce(max(seq), 0) FROM runs").fetchone()[0])


def _copy(source: Path, target: Path) -> None:
    """Copies the database as of one moment, whatever is committed meanwhile. It is one step: a copy in several begins
    anew whenever somebody writes, and under load would never end."""
    with _opened(source) as reading, closing(sqlite3.connect(target)) as writing:
        try:
            reading.backup(writing)
        except sqlite3.DatabaseError as error:  # of either file
            raise BackupFailed(f"{source} cannot be copied to {target.parent.parent}: {error}") from error
        # One file, without a log beside it. The program that opens it goes back to its own mode.
        writing.execute("PRAGMA journal_mode=DELETE")
        report = quick_check(writing)
    if report != "ok":
        raise BackupFailed(f"{source} is damaged: {report}. No backup was made of it; keep the older ones")


def _take_out_later_runs(journal: Path, database: Path, newest_run: int) -> None:
    """Runs begun after the database was copied. Older ones stay even where retention has deleted their call:
    they may be asleep for longer than the history is kept."""
    with closing(sqlite3.connect(journal)) as connection:
        if not _has_runs(connection):
            return  # the engine was ended before it had made its tables
        connection.execute("ATTACH ? AS gateway", [str(database)])
        with connection:
            connection.execute(
                "DELETE FROM runs WHERE seq > ? AND delivery NOT IN (SELECT key FROM gateway.deliveries)",
                [newest_run],
            )
            connection.execute("DELETE FROM steps WHERE run NOT IN (SELECT seq FROM runs)")


def _has_runs(connection: sqlite3.Connection) -> bool:
    cursor = connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'runs'")
    return bool(cursor.fetchone()[0])


def _manifest(parts: dict[str, Path]) -> Manifest:
    with closing(sqlite3.connect(parts[DATABASE])) as connection:
        names = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
        ).fetchall()
        rows = {name: connection.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for (name,) in names}
        revision = connection.execute("SELECT version_num FROM alembic_version").fetchone()[0]
        noted = (
            connection.execute("SELECT value FROM meta WHERE name = 'keys'").fetchone()
            if "meta" in rows
            else None
        )
    return Manifest(
        format=FORMAT,
        version=__version__,
        schema=revision,
        made_at=iso(time.time()),
        key_fingerprints=noted[0].split() if noted else [],
        rows=rows,
        sha256={name: _sha256(path) for name, path in parts.items()},
    )


def _pack(manifest: Manifest, parts: dict[str, Path], file: Path) -> None:
    """Under its name only when it is whole and on disk: a backup that was cut off must not look like one."""
    unfinished = parts[DATABASE].parent / "backup"
    with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
        with tarfile.open(fileobj=stream, mode="w:gz", compresslevel=3) as archive:
            text = msgspec.json.format(msgspec.json.encode(manifest)) + b"\n"
            about = tarfile.TarInfo(MANIFEST)
            about.size, about.mode = len(text), 0o600
            archive.addfile(about, io.BytesIO(text))
            for name, path in parts.items():
                member = archive.gettarinfo(path, name)
                member.mode, member.uid, member.gid, member.uname, member.gname = 0o600, 0, 0, "", ""
                with path.open("rb") as content:
                    archive.addfile(member, content)
        stream.flush()
        os.fsync(stream.fileno())
    unfinished.replace(file)
    sync_folder(file.parent)


@contextmanager
def _opened(file: Path) -> Iterator[sqlite3.Connection]:
    # Reads only; the mode is rw because a log that was left by a power cut has to be read, too.
    try:
        with closing(
            sqlite3.connect(f"{file.resolve().as_uri()}?mode=rw", uri=True, timeout=10)
        ) as connection:
            yield connection
    except sqlite3.DatabaseError as error:
        raise BackupFailed(f"{file} cannot be read: {error}") from error


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
