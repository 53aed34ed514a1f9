"""Files and folders that nobody but their owner may open, whatever the umask: they hold what callers sent."""

import os
import stat
from contextlib import suppress
from pathlib import Path

_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def private_folder(folder: Path) -> None:
    """Made, or closed to others where it is there already: an older version made it with the usual permissions."""
    folder.mkdir(0o700, parents=True, exist_ok=True)
    if not folder.stat().st_mode & stat.S_ISVTX:  # /tmp, which is everybody's
        _close_to_others(folder)


def private_file(file: Path) -> None:
    """Made empty, or closed to others where it is there already. SQLite gives the files that it puts beside a
    database the same mode, but only when it makes them."""
    file.parent.mkdir(0o700, parents=True, exist_ok=True)
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
