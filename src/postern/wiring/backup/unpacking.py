"""A backup is read, and believed nothing: what is damaged, forged or another program's is refused."""

import gzip
import hashlib
import sqlite3
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Self

import msgspec

from postern import __version__
from postern.stores.sql import schema
from postern.surfaces.cli.gateway.machine import Manifest
from postern.wiring.backup.contents import DATABASE, FORMAT, KEYS, MANIFEST, SEALED_KEYS, BackupFailed
from postern.wiring.backup.files import quick_check, write_private

NAME_SHOWN = 100
"""Characters shown of a name in a backup: a stranger may have written it."""


class Unpacked(msgspec.Struct):
    manifest: Manifest
    databases: dict[str, Path]
    """The databases by their names in the backup, each beside the place where it goes."""
    keys: dict[str, bytes]
    """The keys in the backup, by the name of their file."""


@contextmanager
def unpacked(file: Path, places: dict[str, Path]) -> Iterator[Unpacked]:
    """Checked. Files still beside their place afterwards are deleted."""
    waiting = {name: place.with_name(f"{place.name}.restoring") for name, place in places.items()}
    try:
        # Forwards only: a pipe cannot be read otherwise, and of a file everything would be unpacked twice.
        with (
            _told_in_words(file, waiting),
            # Unbuffered: a buffer reads again and again without a look at signals, and one that comes in between is heard when
            # the next read ends, which for a pipe can be never.
            file.open("rb", buffering=0) as raw,
            gzip.open(raw) as stream,
            tarfile.open(fileobj=stream, mode="r|", tarinfo=_Member) as archive,
        ):
            contents = _unpack(file, archive, waiting)
            # The end of the stream has its checksum, and no archive is read so far by itself.
            while stream.read(1 << 20):
                pass
        if contents.manifest.sha256.keys() != contents.databases.keys() | contents.keys.keys():
            raise BackupFailed(f"{file} is damaged: it ends too early")
        _check(file, contents)
        yield contents
    finally:
        for path in waiting.values():
            path.unlink(missing_ok=True)


def _unpack(file: Path, archive: tarfile.TarFile, waiting: dict[str, Path]) -> Unpacked:
    contents = Unpacked(_read_manifest(archive, file), {}, {})
    while (member := archive.next()) is not None:
        name, content = member.name, archive.extractfile(member)
        if content is None or name not in (*waiting, KEYS, SEALED_KEYS):
            raise BackupFailed(f"{file} holds {name[:NAME_SHOWN]}, which does not belong into a backup")
        if name in contents.keys or name in contents.databases:
            raise BackupFailed(f"{file} is damaged: it holds {name} twice")
        if name in waiting:
            contents.databases[name] = waiting[name]
            digest = write_private(waiting[name], content)
        else:
            contents.keys[name] = content.read(1_000_000)
            digest = hashlib.sha256(contents.keys[name]).hexdigest()
        if digest != contents.manifest.sha256.get(name):
            raise BackupFailed(f"{file} is damaged: {name} is not what was backed up")
    return contents


@contextmanager
def _told_in_words(file: Path, waiting: dict[str, Path]) -> Iterator[None]:
    """Makes a sentence of each error, without the libraries' way of showing bytes."""
    try:
        yield
    except OSError as error:
        begun = any(path.exists() for path in waiting.values())  # else it is the first bytes that are wrong
        if isinstance(error, gzip.BadGzipFile) and "Not a gzipped" in str(error) and not begun:
            wrong = "it is not compressed as one"
        elif error.filename:
            raise BackupFailed(f"{error.filename} cannot be used: {error.strerror}") from None
        elif error.errno:  # a full disk: the file may be as good as ever
            where = waiting[DATABASE].parent
            raise BackupFailed(f"{file} cannot be unpacked into {where}: {error.strerror}") from None
        else:
            wrong = "its contents are not what was written"
    except EOFError:
        wrong = "it ends too early"
    except (tarfile.TarError, zlib.error, ValueError, RecursionError):
        wrong = "its contents are not what was written"
    else:
        return
    raise BackupFailed(f"{file} is no backup of Postern, or it is damaged: {wrong}")


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


def _check(file: Path, contents: Unpacked) -> None:
    """The sums say that nothing has changed, and not that it was a database: a file can be made to look like a backup."""
    if DATABASE not in contents.databases:
        raise BackupFailed(f"{file} is damaged: there is no database in it")
    for name, path in contents.databases.items():
        address = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
        try:
            with closing(sqlite3.connect(address, uri=True)) as opened:
                report = quick_check(opened)
                if report == "ok" and name == DATABASE:
                    row = opened.execute("SELECT version_num FROM alembic_version").fetchone()
                    if row != (contents.manifest.schema,):
                        report = "its schema is another one than the backup says"
        except (sqlite3.Error, UnicodeDecodeError) as error:
            report = str(error)
        if report != "ok":
            raise BackupFailed(f"{file} is damaged: {name} in it cannot be used: {str(report)[:NAME_SHOWN]}")


def _read_manifest(archive: tarfile.TarFile, file: Path) -> Manifest:
    first = archive.next()
    content = archive.extractfile(first) if first is not None and first.name == MANIFEST else None
    if content is None:
        raise BackupFailed(f"{file} is no backup of Postern")
    read = content.read(1_000_000)
    made_by = msgspec.json.decode(read)
    if not isinstance(made_by, dict) or not isinstance(made_by.get("format"), int):
        raise BackupFailed(f"{file} is no backup of Postern")
    made = f"this backup was made by version {str(made_by.get('version'))[:NAME_SHOWN]}"
    if made_by["format"] > FORMAT:
        raise BackupFailed(f"{made}, in a form that this version ({__version__}) does not know: use that one")
    if why := schema.why_unknown(str(made_by.get("schema"))[:NAME_SHOWN]):
        raise BackupFailed(f"{made} and cannot be restored: {why}")
    return msgspec.json.decode(read, type=Manifest)
