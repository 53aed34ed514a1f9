"""Programs from npm, installed once into a cache folder outside the tree."""

import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "postern-tests"


def from_npm(package: str, version: str) -> Path:
    """The folder that has it in its ``node_modules``."""
    folder = CACHE / f"{package.rpartition('/')[2]}-{version}"
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # test processes run side by side
        if not (folder / "node_modules" / package).exists():
            fresh = Path(tempfile.mkdtemp(dir=CACHE))
            command = [
                "npm",
                "install",
                "--ignore-scripts",
                "--no-audit",
                "--no-fund",
                "--prefix",
                str(fresh),
            ]
            done = subprocess.run(
                [*command, f"{package}@{version}"], capture_output=True, text=True, timeout=300, cwd=fresh
            )
            assert done.returncode == 0, f"npm could not install {package}:\n{done.stderr}"
            shutil.rmtree(folder, ignore_errors=True)
            fresh.rename(folder)
    return folder
