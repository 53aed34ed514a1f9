"""A backup of everything in one file, made while the gateway serves, and putting it back.

The database is copied first and the engine's journal second. What the database calls started is then in the
journal: the other way round, a call that was handed to the engine between the two copies would be called
started by the one and be unknown to the other, and its workflow would never run. What the journal has in
addition are runs that were begun between the two copies; they are taken out again, for the calls that they
belong to are not in the database either.
"""

import gzip
import hashlib
import io
import os
import sqlite3
import tarfile
import tempfile
import time
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt
from sqlalchemy.engine import make_url

from postern import __version__
from postern.private_files import private_folder
from postern.settings import Settings
from postern.stores.secrets.vault import Vault
from postern.stores.sql import schema
from postern.surfaces.cli.gateway.backups import Manifest, Restored
from postern.usecases.answers import iso
from postern.wiring.gateway import alone

FORMAT = 1
MANIFEST, DATABASE, JOURNAL, KEYS, SEALED_KEYS = (
    "manifest.json",
    "postern.db",
    "engine.db",
    "keys",
    "keys.sealed",
)
_BOUND_TO = b"postern backup keys v1"


class BackupFailed(Exception):
    """One sentence; nothing was written, or nothing was changed."""


# --- making one ------------------------------------------------------------------------------------------------


def back_up(
    settings: Settings, file: Path, *, with_keys: bool, passphrase: str | None, replace: bool
) -> Manifest:
    """``passphrase`` seals the keys. Raises ``BackupFailed``."""
    source = _sqlite_file(settings)
    if not source.exists():
        raise BackupFailed(f"There is no database {source}. POSTERN_DATA_DIR says where it is.")
    if file.exists() and not replace:
        raise BackupFailed(f"{file} is there already; --replace overwrites it")
    keys = _keys_in_force(settings)
    if (with_keys or passphrase) and not keys:
        raise BackupFailed(
            "there are no keys to put into it: POSTERN_SECRET_KEYS is not set, and there is no secret.key"
        )
    # Beside the file, which has the room for it or is the wrong place for a backup.
    beside = file.resolve().parent
    with tempfile.TemporaryDirectory(prefix=".postern-backup-", dir=beside) as folder, _written_to(beside):
        parts = {DATABASE: Path(folder, DATABASE)}
        journal = settings.data_dir / JOURNAL
        newest_run = _newest_run(journal)
        _copy(source, parts[DATABASE])
        if journal.exists():
            parts[JOURNAL] = Path(folder, JOURNAL)
            _copy(journal, parts[JOURNAL])
            _take_out_later_runs(parts[JOURNAL], parts[DATABASE], newest_run)
        if passphrase:
            parts[SEALED_KEYS] = Path(folder, SEALED_KEYS)
            parts[SEALED_KEYS].write_bytes(_sealed(",".join(keys).encode(), passphrase))
        elif with_keys:
            parts[KEYS] = Path(folder, KEYS)
            parts[KEYS].write_text(",".join(keys) + "\n")
        manifest = _manifest(parts)
        _pack(manifest, parts, file)
    return manifest


@contextmanager
def _written_to(folder: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.DatabaseError, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise BackupFailed(f"{folder} cannot be written to: {reason}") from error


def _sqlite_file(settings: Settings) -> Path:
    if not settings.is_sqlite:
        raise BackupFailed("a Postgres database is backed up with Postgres' own tools: see docs/backup.md")
    return Path(make_url(settings.database).database or "")


def _newest_run(journal: Path) -> int:
    if not journal.exists():
        return 0
    with _opened(journal) as connection:
        if not _has_runs(connection):
            return 0
        return int(connection.execute("SELECT coalesce(max(seq), 0) FROM runs").fetchone()[0])


def _copy(source: Path, target: Path) -> None:
    """As of one moment, whatever is committed meanwhile. In one step: a copy in several begins anew whenever
    somebody writes, and under load would never end."""
    with _opened(source) as reading, closing(sqlite3.connect(target)) as writing:
        try:
            reading.backup(writing)
        except sqlite3.DatabaseError as error:  # of either file
            raise BackupFailed(f"{source} cannot be copied to {target.parent.parent}: {error}") from error
        # One file, without a log beside it. The program that opens it goes back to its own mode.
        writing.execute("PRAGMA journal_mode=DELETE")
        found = writing.execute("PRAGMA quick_check").fetchone()[0]
    if found != "ok":
        raise BackupFailed(f"{source} is damaged: {found}. No backup was made of it; keep the older ones")


def _take_out_later_runs(journal: Path, database: Path, newest_run: int) -> None:
    """Runs begun after the database was copied. Older ones stay even where retention has deleted their call:
    they may be asleep for longer than the history is kept."""
    with closing(sqlite3.connect(journal)) as connection:
        if not _has_runs(connection):
            return  # of an earlier version, which is carried over when it is opened
        connection.execute("ATTACH ? AS gateway", [str(database)])
        with connection:
            connection.execute(
                "DELETE FROM runs WHERE seq > ? AND delivery NOT IN (SELECT key FROM gateway.deliveries)",
                [newest_run],
            )
            connection.execute("DELETE FROM steps WHERE run NOT IN (SELECT seq FROM runs)")


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
    _sync_folder(file.resolve().parent)


# --- putting one back ------------------------------------------------------------------------------------------


def restore(settings: Settings, file: Path, *, passphrase: str | None, replace: bool) -> Restored:
    """Raises before anything is changed: ``BackupFailed``, or ``CannotStart`` where a gateway serves."""
    database = _sqlite_file(settings)
    journal = settings.data_dir / JOURNAL
    private_folder(settings.data_dir)
    private_folder(database.parent)
    with alone(settings), _unpacked(file, {DATABASE: database, JOURNAL: journal}) as (manifest, found, keys):
        if (database.exists() or journal.exists()) and not replace:
            raise BackupFailed(
                f"There is a database already in {settings.data_dir}; --replace moves it aside"
            )
        given = _keys_of_backup(keys, passphrase)
        keys_file, missing = _where_keys_go(settings, given, manifest, replace)
        moved = []
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        # The database goes first and comes last: a start in between finds a journal without a database, and
        # says so instead of beginning anew.
        for old in (database, journal):
            moved += _move_aside(old, stamp)
        if keys_file is not None and given is not None:
            moved += _move_aside(keys_file, stamp)
            _write_private(keys_file, given + "\n")
        # Which runs the engine was at when it ended: of the journal that is moved aside.
        journal.with_suffix(".working").unlink(missing_ok=True)
        for target in (journal, database):
            if target in found:
                found[target].replace(target)
                _sync_folder(target.parent)
    return Restored(
        manifest=manifest,
        moved_aside=[str(path) for path in moved],
        keys_file=str(keys_file) if keys_file else None,
        missing_keys=missing,
    )


@contextmanager
def _unpacked(
    file: Path, targets: dict[str, Path]
) -> Iterator[tuple[Manifest, dict[Path, Path], dict[str, bytes]]]:
    """The files, checked, each beside the place where it goes, and what the backup has of keys. What is left over
    afterwards is deleted."""
    waiting = {target: target.with_name(f"{target.name}.restoring") for target in targets.values()}
    found: dict[Path, Path] = {}
    keys: dict[str, bytes] = {}
    try:
        try:
            with gzip.open(file) as stream, tarfile.open(fileobj=stream, mode="r:") as archive:
                manifest = _read_manifest(archive, file)
                for member in archive.getmembers()[1:]:
                    content = archive.extractfile(member) if member.isfile() else None
                    if content is None or member.name not in manifest.sha256:
                        raise BackupFailed(f"{file} holds {member.name}, which does not belong into a backup")
                    if member.name in targets:
                        target = targets[member.name]
                        found[target] = waiting[target]
                        digest = _write_private(found[target], content)
                    else:
                        keys[member.name] = content.read(1_000_000)
                        digest = hashlib.sha256(keys[member.name]).hexdigest()
                    if digest != manifest.sha256[member.name]:
                        raise BackupFailed(f"{file} is damaged: {member.name} is not what was backed up")
                # The end of the stream has its checksum, and no archive is read so far by itself.
                while stream.read(1 << 20):
                    pass
        except (tarfile.TarError, zlib.error, EOFError, OSError, ValueError) as error:
            if isinstance(error, OSError) and error.filename:
                raise BackupFailed(f"{error.filename} cannot be used: {error.strerror}") from None
            if isinstance(error, OSError) and error.errno:  # a full disk: the file may be as good as ever
                where = targets[DATABASE].parent
                raise BackupFailed(f"{file} cannot be unpacked into {where}: {error.strerror}") from None
            raise BackupFailed(
                f"{file} is no backup of Postern, or it is damaged: {_in_words(error)}"
            ) from None
        if (
            manifest.sha256.keys()
            != {name for name, target in targets.items() if target in found} | keys.keys()
        ):
            raise BackupFailed(f"{file} is damaged: it ends too early")
        yield manifest, found, keys
    finally:
        for path in waiting.values():
            path.unlink(missing_ok=True)


def _in_words(error: Exception) -> str:
    """What is wrong with the bytes, without the library's way of writing them."""
    return (
        "it ends too early"
        if isinstance(error, EOFError)
        else "it is not compressed as one"
        if isinstance(error, gzip.BadGzipFile) and "Not a gzipped" in str(error)
        else "its contents are not what was written"
    )


def _read_manifest(archive: tarfile.TarFile, file: Path) -> Manifest:
    first = archive.next()
    content = archive.extractfile(first) if first is not None and first.name == MANIFEST else None
    if content is None:
        raise BackupFailed(f"{file} is no backup of Postern")
    read = content.read(1_000_000)
    made_by = msgspec.json.decode(read)
    if not isinstance(made_by, dict) or not isinstance(made_by.get("format"), int):
        raise BackupFailed(f"{file} is no backup of Postern")
    if made_by["format"] > FORMAT or not schema.is_known(str(made_by.get("schema"))):
        raise BackupFailed(
            f"this backup was made by version {made_by.get('version')}, whose data this version ({__version__}) does not "
            "know: restore it with that one or a newer one"
        )
    return msgspec.json.decode(read, type=Manifest)


def _move_aside(file: Path, stamp: str) -> list[Path]:
    """With the log beside it, which belongs to it and would be taken for the new one's."""
    moved = []
    for side in ("", "-wal", "-shm"):
        old = file.with_name(file.name + side)
        if old.exists():
            moved.append(old.with_name(f"{file.name}.before-{stamp}{side}"))
            old.replace(moved[-1])
    return moved[:1]


# --- keys ------------------------------------------------------------------------------------------------------


def _keys_in_force(settings: Settings) -> list[str]:
    if settings.secret_keys:
        return settings.secret_keys
    file = settings.data_dir / "secret.key"
    return [key] if file.exists() and (key := file.read_text().strip()) else []


def _keys_of_backup(found: dict[str, bytes], passphrase: str | None) -> str | None:
    if SEALED_KEYS in found:
        if not passphrase:
            raise BackupFailed("the keys in this backup are sealed: give their passphrase with --passphrase")
        return _unsealed(found[SEALED_KEYS], passphrase).decode()
    return found[KEYS].decode().strip() if KEYS in found else None


def _where_keys_go(
    settings: Settings, given: str | None, manifest: Manifest, replace: bool
) -> tuple[Path | None, bool]:
    """The file for the backup's keys, if they go into one; whether keys are missing."""
    own = _keys_in_force(settings)
    needed = set(manifest.key_fingerprints)
    generated = settings.data_dir / "secret.key"
    if own and (not needed or Vault(own).fingerprints & needed):
        return None, False
    if own and (given is None or settings.secret_keys):
        raise BackupFailed(
            f"the secrets in this backup are encrypted with the key {' or '.join(sorted(needed))}, and the keys given here are "
            f"{', '.join(sorted(Vault(own).fingerprints))}: set POSTERN_SECRET_KEYS as it was when the backup was made"
        )
    if own and not replace:
        raise BackupFailed(f"There is another key in {generated}; --replace moves it aside")
    if given is None:
        return None, bool(needed)
    # The program reads a single key from secret.key; several are a setting.
    return (settings.data_dir / "secret-keys" if "," in given else generated), False


def _sealed(keys: bytes, passphrase: str) -> bytes:
    salt, nonce = os.urandom(16), os.urandom(12)
    return salt + nonce + AESGCM(_stretched(passphrase, salt)).encrypt(nonce, keys, _BOUND_TO)


def _unsealed(sealed: bytes, passphrase: str) -> bytes:
    try:
        cipher = AESGCM(_stretched(passphrase, sealed[:16]))
        return cipher.decrypt(sealed[16:28], sealed[28:], _BOUND_TO)
    except (InvalidTag, ValueError):
        raise BackupFailed(
            "this is not the passphrase with which the keys in the backup were sealed"
        ) from None


def _stretched(passphrase: str, salt: bytes) -> bytes:
    return Scrypt(salt=salt, length=32, n=2**16, r=8, p=1).derive(passphrase.encode())


# --- files -----------------------------------------------------------------------------------------------------


@contextmanager
def _opened(file: Path) -> Iterator[sqlite3.Connection]:
    # Reads only; the mode is rw because a log that was left by a power cut has to be read, too.
    with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=rw", uri=True, timeout=10)) as connection:
        try:
            yield connection
        except sqlite3.DatabaseError as error:
            raise BackupFailed(f"{file} cannot be read: {error}") from error


def _has_runs(connection: sqlite3.Connection) -> bool:
    found = connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'runs'")
    return bool(found.fetchone()[0])


def _write_private(file: Path, content: IO[bytes] | str) -> str:
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


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _sync_folder(folder: Path) -> None:
    with suppress(OSError):  # some file systems cannot
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
