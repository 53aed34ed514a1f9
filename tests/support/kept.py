"""Keeps downloads from package registries in a cache folder outside the tree."""

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "postern-tests"


def kept(name: str, command: Callable[[Path], list[str]]) -> Path:
    """The folder of this name, which the command fills when it is not there."""
    folder = CACHE / name
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # test processes run side by side
        if not folder.exists():
            fresh = Path(tempfile.mkdtemp(dir=CACHE))
            done = subprocess.run(
                command(fresh), capture_output=True, text=True, timeout=840, cwd=fresh, check=False
            )
            if done.returncode != 0:
                shutil.rmtree(fresh)
            assert done.returncode == 0, f"{name} could not be fetched:\n{done.stderr}"
            fresh.rename(folder)
    return folder
