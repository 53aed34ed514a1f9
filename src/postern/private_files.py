"""Files and folders that nobody but their owner may open, whatever the umask: they hold what callers sent."""

import os
import pwd
import stat
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def make_folder(folder: Path) -> None:
    """Made where it is missing, with those above it: who may write into one of them may replace what lies below."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(0o700, exist_ok=True)


def private_folder(folder: Path) -> None:
    """Creates it, or makes it private."""
    make_folder(folder)
    if not folder.stat().st_mode & stat.S_ISVTX:  # /tmp, which is everybody's
        _close_to_others(folder)


def sync(path: Path) -> None:
    """Returns when the file or folder is on disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Openness(Struct, frozen=True):
    """Unsafe permissions of a folder."""

    problem: str
    is_lost: bool = False
    """It belongs to another user, and everybody may write into it: nothing in it can be trusted."""


def openness(folder: Path) -> Openness | None:
    """Returns what is wrong with the folder's permissions. To be asked before it is closed to others. Root may do
    everything anyway: what belongs to root is trusted."""
    try:
        status = folder.stat()
    except FileNotFoundError:
        return None
    for_everybody = bool(status.st_mode & stat.S_IWOTH)
    if status.st_uid not in (os.geteuid(), 0):
        owner = f"it belongs to the user {_name_of(status.st_uid)}"
        if for_everybody:
            return Openness(f"{owner}, and everybody may write into it", is_lost=True)
        return Openness(f"{owner}, who may read and replace everything in it")
    if status.st_mode & stat.S_ISVTX:
        return Openness("everybody may put files into it") if for_everybody else None
    if status.st_uid != os.geteuid():
        return Openness("everybody may write into it") if for_everybody else None
    if status.st_mode & (stat.S_IWOTH | stat.S_IWGRP):
        who = "everybody" if for_everybody else "its group"
        return Openness(f"{who} could write into it until now, and may have changed what is there")
    return None


def _name_of(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return str(user)


def private_file(file: Path) -> None:
    """Made empty, or closed to others where it is there already. SQLite gives the files that it puts beside a
    database the same mode, but only when it makes them."""
    make_folder(file.parent)
    # Only where it is not there yet: to open and close a database takes away the locks that this process has on it.
    with suppress(OSError):  # whoever opens it says better what is wrong with it
        os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    for side in ("", "-wal", "-shm", "-journal"):
        _close_to_others(file.with_name(file.name + side))


def _close_to_others(path: Path) -> None:
    with suppress(FileNotFoundError, PermissionError):  # some file systems know no modes
        status = path.stat()
        if status.st_mode & _OTHERS and status.st_uid == os.geteuid():
            path.chmod(stat.S_IMODE(status.st_mode) & ~_OTHERS)
