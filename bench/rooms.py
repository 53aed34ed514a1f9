"""The ground of a measurement: a real Postgres that keeps its promises, and entries as calls make them."""

import os
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from engines.dbos_server import running_dbos as running_dbos
from engines.node_red import installed as installed
from engines.restate_server import restate_server as restate_server
from engines.restate_server import running_restate as running_restate
from journeys.cluster import make_webhook as make_webhook
from stores.conftest import entry as entry
from support import postgres as bed
from support import power_cut as power_cut
from support.callers import called as called
from support.callers import flood as flood
from support.client import admin_of as admin_of
from support.client import call as call
from support.client import made as made
from support.program import Program as Program
from support.program import run_postern as run_postern
from support.recording import kept as kept
from support.server import Answer as Answer
from support.server import Asked as Asked
from support.server import serving as serving
from support.waiting import free_port as free_port
from support.waiting import wait_until as wait_until

RESULTS = Path(__file__).parent / "results"
KEYS = ["a key of these measurements"]


@contextmanager
def durable_postgres() -> Iterator[str]:
    """The tests' server with fsync on: what is measured is what is promised."""
    bed.SETTINGS.update(
        fsync="on", synchronous_commit="on", full_page_writes="on", autovacuum="on", shared_buffers="256MB"
    )
    binaries = bed.find_binaries()
    if binaries is None:
        sys.exit("no Postgres binaries: install the locked development packages, or Debian's postgresql")
    with bed.running(binaries) as url:
        yield url


def table(heading: list[str], rows: list[list[str]]) -> str:
    widths = [max(len(row[place]) for row in [heading, *rows]) for place in range(len(heading))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in [heading, *rows]
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def keep(title: str, how: str, text: str) -> None:
    """Appends the result to the file of the day."""
    now = datetime.now(UTC)
    where = f"Python {platform.python_version()}, {len(os.sched_getaffinity(0))} cores, load average {os.getloadavg()[0]:.1f}"
    RESULTS.mkdir(exist_ok=True)
    with (RESULTS / f"{now:%Y-%m-%d}.md").open("a") as file:
        file.write(f"# {title}, {now:%Y-%m-%d %H:%M} UTC\n\n{where}; {how}\n\n{text}\n\n")
    print(f"{text}\nWritten to {file.name}")
