"""Power cuts, as hard as they can be: of what a process wrote, only what it had synced is left."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_name("power_cut.c")


def preload(folder: Path) -> str:
    """The library for ``LD_PRELOAD``, made in this folder. Skips where there is no C compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    library = folder / "power_cut.so"
    command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(SOURCE), "-ldl"]
    subprocess.run(command, check=True, capture_output=True)
    return str(library)


def environment(folder: Path, data: Path, sync_takes: int = 0) -> dict[str, str]:
    """The environment of a process whose files in ``data`` shall be cut back."""
    takes = {"SYNC_TAKES": str(sync_takes)} if sync_takes else {}
    return {"LD_PRELOAD": preload(folder), "POWER_CUT_FOLDER": str(data), **takes}


def cut_back(data: Path) -> None:
    """Leave in this folder what was synced, after the processes that wrote there have been stopped. A file that
    was deleted stays so."""
    for file in [file for file in data.iterdir() if not file.name.endswith((".synced", ".being-synced"))]:
        synced = file.with_name(f"{file.name}.synced")
        if file.name.endswith("-shm"):
            file.unlink()
        elif synced.exists():
            synced.replace(file)
        else:
            os.truncate(file, 0)
    for copy in [*data.glob("*.synced"), *data.glob("*.being-synced")]:
        copy.unlink()
