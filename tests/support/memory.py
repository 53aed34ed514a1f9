"""Chooses where tests write: in memory, where there is enough of it. A commit waits for the disk, and a test makes
some dozens of them; nobody needs the files any more when it has passed."""

import os
import tempfile
from pathlib import Path

MEMORY = Path("/dev/shm")
ENOUGH = 3 * 1024**3
"""The bytes that all tests need at once, on as many lanes as there may be: far more than they take."""


def write_to_memory() -> None:
    """Temporary folders of this process and of all that it starts. Whoever has said where they are to be is believed."""
    if "TMPDIR" not in os.environ and has_room(MEMORY):
        os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)


def has_room(folder: Path, enough: int = ENOUGH) -> bool:
    """Containers often have 64 MB of it, and let nothing be run from there: tests unpack programs."""
    try:
        here = os.statvfs(folder)
        known = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
        available = int(known["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError):
        return False
    closed = here.f_flag & (os.ST_NOEXEC | os.ST_RDONLY)
    room = min(here.f_bavail * here.f_frsize, available)
    return not closed and os.access(folder, os.W_OK | os.X_OK) and room >= enough
