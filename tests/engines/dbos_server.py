"""The example's DBOS app with the tests' workflow beside its own, as a process on a real Postgres."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.waiting import PATIENCE, wait_until

EXAMPLE = Path(__file__).parents[2] / "examples" / "dbos_app.py"


@contextmanager
def running_dbos(url: str, folder: Path) -> Iterator[Path]:
    """The file with what was run."""
    mine = {"DBOS_EXAMPLE": str(EXAMPLE), "DBOS_RAN": str(folder / "ran"), "DBOS_DATABASE": url}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("dbos_echo.py"))],
            stdout=log,
            stderr=log,
            cwd=folder,
            env={**os.environ, **mine, "ORDER_LOOKUP_WEBHOOK": "wh_1"},
        )
    try:

        def launched() -> bool:
            assert process.poll() is None, (folder / "log").read_text()[-2000:]
            return "DBOS launched" in (folder / "log").read_text()

        wait_until(launched, what=lambda: "DBOS; its log: " + (folder / "log").read_text()[-2000:])
        yield folder / "ran"
    finally:
        process.kill()
        process.wait(PATIENCE)
