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
import signal
import sqlite3
import sys
import tarfile
import tempfile
import time
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Self

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt
from sqlalchemy.engine import make_url

from postern import __version__
from postern.private_files import private_folder
from postern.settings import Settings
from postern.stores.secrets.vault import Vault, key_from_file
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
SIDES = ("", "-wal", "-shm", "-journal")
"""What SQLite puts beside a database, and takes for a part of it."""
OWN = (
    "secret.key",
    "secret-keys",
    "serving.lock",
    "engine.lock",
    "engine.working",
    "address",
    "workflows.path",
    "changed.sock",
)
"""What else lies in the data folder."""
NAME_SHOWN = 100
"""Characters of what a stranger may have written into a backup."""
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
    place = _place_for(file, settings, source, replace)
    with_keys = with_keys or passphrase is not None
    keys = _keys_in_force(settings) if with_keys else []
    if with_keys and not keys:
        raise BackupFailed(
            "there are no keys to put into it: POSTERN_SECRET_KEYS is not set, and there is no secret.key"
        )
    # Beside the file, which has the room for it or is the wrong place for a backup.
    with (
        _tidied_up(),
        _written_to(place.parent),
        tempfile.TemporaryDirectory(prefix=".postern-backup-", dir=place.parent) as folder,
    ):
        parts = {DATABASE: Path(folder, DATABASE)}
        journal = settings.data_dir / JOURNAL
        newest_run = _newest_run(journal)
        _copy(source, parts[DATABASE])
        if journal.exists():
            parts[JOURNAL] = Path(folder, JOURNAL)
            _copy(journal, parts[JOURNAL])
            _take_out_later_runs(parts[JOURNAL], parts[DATABASE], newest_run)
        if passphrase is not None:
            parts[SEALED_KEYS] = Path(folder, SEALED_KEYS)
            parts[SEALED_KEYS].write_bytes(_sealed(",".join(keys).encode(), passphrase))
        elif with_keys:
            parts[KEYS] = Path(folder, KEYS)
            parts[KEYS].write_text(",".join(keys) + "\n")
        manifest = _manifest(parts)
        if with_keys and not _has_one_of(keys, manifest):
            raise _other_keys("database", "given here", keys, manifest, "is set for the gateway")
        _pack(manifest, parts, place)
    return manifest


def _place_for(file: Path, settings: Settings, database: Path, replace: bool) -> Path:
    """Where a link leads to. What is there is overwritten only where it may be: no folder and no device, and nothing that
    the gateway itself needs, which may not even be there yet."""
    place = Path(os.path.realpath(file))  # not resolve(), which raises where links go round in a circle
    own = {database.resolve().with_name(database.resolve().name + side) for side in (*SIDES, ".lock")}
    journal = settings.data_dir.resolve() / JOURNAL
    own |= {journal.with_name(journal.name + side) for side in SIDES}
    own |= {journal.with_name(name) for name in OWN}
    if place in own:
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
        found = _quick_check(writing)
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
    _sync_folder(file.parent)


# --- putting one back ------------------------------------------------------------------------------------------


def restore(settings: Settings, file: Path, *, passphrase: str | None, replace: bool) -> Restored:
    """Raises before anything is changed: ``BackupFailed``, or ``CannotStart`` where a gateway serves."""
    database = _sqlite_file(settings)
    journal = settings.data_dir / JOURNAL
    private_folder(settings.data_dir)
    private_folder(database.parent)
    with (
        _tidied_up(),
        alone(settings),
        _unpacked(file, {DATABASE: database, JOURNAL: journal}) as (manifest, found, keys),
    ):
        if (database.exists() or journal.exists()) and not replace:
            raise BackupFailed(
                f"There is a database already in {settings.data_dir}; --replace moves it aside"
            )
        given = _keys_of_backup(file, keys, passphrase)
        keys_file, missing = _where_keys_go(settings, given, manifest, replace)
        moved = []
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        with ExitStack() as undoing:  # what was done until something cannot be done
            # The database goes first and comes last: a start in between finds a journal without a database, and
            # says so instead of beginning anew.
            for old in (database, journal):
                moved += _move_aside(old, stamp, undoing)
            if keys_file is not None and given is not None:
                moved += _move_aside(keys_file, stamp, undoing)
                undoing.callback(keys_file.unlink, missing_ok=True)
                _write_private(keys_file, given + "\n")
            # Which runs the engine was at when it ended: of the journal that is moved aside.
            were_at_work = _move_aside(journal.with_suffix(".working"), stamp, undoing)
            for target in (journal, database):
                if target in found:
                    undoing.callback(target.unlink, missing_ok=True)
                    found[target].replace(target)
                    _sync_folder(target.parent)
            undoing.pop_all()
        for path in were_at_work:
            with suppress(OSError):
                path.unlink()
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
    manifest: Manifest | None = None
    try:
        try:
            # Forwards only: a pipe cannot be read otherwise, and of a file everything would be unpacked twice.
            with (
                gzip.open(file) as stream,
                tarfile.open(fileobj=stream, mode="r|", tarinfo=_Member) as archive,
            ):
                manifest = _read_manifest(archive, file)
                while (member := archive.next()) is not None:
                    name = member.name
                    content = archive.extractfile(member)
                    target = targets.get(name)
                    if content is None or not (target or name in (KEYS, SEALED_KEYS)):
                        raise BackupFailed(
                            f"{file} holds {name[:NAME_SHOWN]}, which does not belong into a backup"
                        )
                    if name in keys or target in found:
                        raise BackupFailed(f"{file} is damaged: it holds {name} twice")
                    if target:
                        found[target] = waiting[target]
                        digest = _write_private(found[target], content)
                    else:
                        keys[name] = content.read(1_000_000)
                        digest = hashlib.sha256(keys[name]).hexdigest()
                    if digest != manifest.sha256.get(name):
                        raise BackupFailed(f"{file} is damaged: {name} is not what was backed up")
                # The end of the stream has its checksum, and no archive is read so far by itself.
                while stream.read(1 << 20):
                    pass
        except (tarfile.TarError, zlib.error, EOFError, OSError, ValueError, RecursionError) as error:
            if isinstance(error, OSError) and error.filename:
                raise BackupFailed(f"{error.filename} cannot be used: {error.strerror}") from None
            if isinstance(error, OSError) and error.errno:  # a full disk: the file may be as good as ever
                where = targets[DATABASE].parent
                raise BackupFailed(f"{file} cannot be unpacked into {where}: {error.strerror}") from None
            raise BackupFailed(
                f"{file} is no backup of Postern, or it is damaged: {_in_words(error, begun=manifest is not None)}"
            ) from None
        if (
            manifest.sha256.keys()
            != {name for name, target in targets.items() if target in found} | keys.keys()
        ):
            raise BackupFailed(f"{file} is damaged: it ends too early")
        _check(file, manifest, {name: found[target] for name, target in targets.items() if target in found})
        yield manifest, found, keys
    finally:
        for path in waiting.values():
            path.unlink(missing_ok=True)


class _Member(tarfile.TarInfo):
    """A backup has ordinary files, each with a few words about it at most. Anything else, a link or words without end, is
    refused before it is looked at."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        member = super().frombuf(buf, encoding, errors)
        about = member.type == tarfile.XHDTYPE and member.size < 100_000
        if not about and member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE):
            raise tarfile.ReadError("not what a backup is made of")
        return member


def _check(file: Path, manifest: Manifest, databases: dict[str, Path]) -> None:
    """The sums say that nothing has changed, and not that it was a database: a file can be made to look like a backup."""
    if DATABASE not in databases:
        raise BackupFailed(f"{file} is damaged: there is no database in it")
    for name, path in databases.items():
        try:
            with closing(
                sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
            ) as opened:
                found = _quick_check(opened)
                if found == "ok" and name == DATABASE:
                    (revision,) = opened.execute("SELECT version_num FROM alembic_version").fetchone() or (
                        "",
                    )
                    if revision != manifest.schema:
                        found = "its schema is another one than the backup says"
        except (sqlite3.Error, UnicodeDecodeError) as error:
            found = str(error)
        if found != "ok":
            raise BackupFailed(f"{file} is damaged: {name} in it cannot be used: {str(found)[:NAME_SHOWN]}")


def _in_words(error: Exception, *, begun: bool) -> str:
    """What is wrong with the bytes, without the library's way of writing them."""
    return (
        "it ends too early"
        if isinstance(error, EOFError)
        else "it is not compressed as one"
        if isinstance(error, gzip.BadGzipFile) and "Not a gzipped" in str(error) and not begun
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
            f"this backup was made by version {str(made_by.get('version'))[:NAME_SHOWN]}, whose data this version "
            f"({__version__}) does not know: restore it with that one or a newer one"
        )
    return msgspec.json.decode(read, type=Manifest)


def _move_aside(file: Path, stamp: str, undoing: ExitStack) -> list[Path]:
    """With the log beside it, which belongs to it and would be taken for the new one's."""
    aside = file.with_name(f"{file.name}.before-{stamp}")
    number = 1
    while aside.exists():  # restored twice within a second
        number += 1
        aside = file.with_name(f"{file.name}.before-{stamp}-{number}")
    moved = []
    for side in SIDES:
        old, new = (one.with_name(one.name + side) for one in (file, aside))
        if old.exists():
            undoing.callback(_move_back, new, old)
            old.replace(new)
            moved.append(new)
    return moved[:1]


def _move_back(aside: Path, file: Path) -> None:
    if aside.exists():  # else it was interrupted just before
        aside.replace(file)


# --- keys ------------------------------------------------------------------------------------------------------


def _keys_in_force(settings: Settings) -> list[str]:
    if settings.secret_keys:
        return settings.secret_keys
    file = settings.data_dir / "secret.key"
    return [key_from_file(file)] if file.exists() else []


def _keys_of_backup(file: Path, found: dict[str, bytes], passphrase: str | None) -> str | None:
    keys = found.get(KEYS)
    if SEALED_KEYS in found:
        if passphrase is None:
            raise BackupFailed("the keys in this backup are sealed: give their passphrase with --passphrase")
        keys = _unsealed(found[SEALED_KEYS], passphrase)
    try:
        return keys.decode().strip() or None if keys is not None else None
    except UnicodeDecodeError:
        raise BackupFailed(f"{file} is damaged: the keys in it are not text") from None


def _as_list(keys: str) -> list[str]:
    return [key for one in keys.split(",") if (key := one.strip())]


def _has_one_of(keys: list[str], manifest: Manifest) -> bool:
    """As it is asked when a database is opened."""
    needed = set(manifest.key_fingerprints)
    return not needed or bool(keys and Vault(keys).fingerprints & needed)


def _other_keys(whose: str, which: str, keys: list[str], manifest: Manifest, when: str) -> BackupFailed:
    needed, there = sorted(manifest.key_fingerprints), sorted(Vault(keys).fingerprints) if keys else ["none"]
    return BackupFailed(
        f"the secrets in this {whose} are encrypted with the key {' or '.join(needed)}, and the keys {which} are "
        f"{', '.join(there)}: set POSTERN_SECRET_KEYS as it {when}"
    )


def _where_keys_go(
    settings: Settings, given: str | None, manifest: Manifest, replace: bool
) -> tuple[Path | None, bool]:
    """The file for the backup's keys, if they go into one; whether keys are missing."""
    own = _keys_in_force(settings)
    generated = settings.data_dir / "secret.key"
    when = "was when the backup was made"
    if own and _has_one_of(own, manifest):
        return None, False
    if own and (given is None or settings.secret_keys):
        raise _other_keys("backup", "given here", own, manifest, when)
    if own and not replace:
        raise BackupFailed(f"There is another key in {generated}; --replace moves it aside")
    if given is None:
        return None, bool(manifest.key_fingerprints)
    if not _has_one_of(_as_list(given), manifest):
        raise _other_keys("backup", "in it", _as_list(given), manifest, when)
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


# --- files and signals -----------------------------------------------------------------------------------------------------


@contextmanager
def _tidied_up() -> Iterator[None]:
    """Whoever is asked to end deletes what is unfinished: it is as large as everything, and the keys may be beside it."""

    def end(number: int, _: object) -> None:
        sys.exit(128 + number)

    ours = [
        number
        for number in (signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(number) is signal.SIG_DFL  # nohup ignores one of them
    ]
    for number in ours:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


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


def _quick_check(connection: sqlite3.Connection) -> str:
    """``ok``, or what is wrong first."""
    lines = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0]).splitlines()
    return lines[-1] if lines else "its pages are damaged"


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
