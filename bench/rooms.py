"""What a measurement stands on: a real Postgres that keeps its promises, and entries as the ingress makes
them."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from beds import postgres as bed
from beds.program import Program as Program
from beds.program import run_postern as run_postern
from beds.recording import kept as kept
from beds.waiting import free_port as free_port
from duties.callers import called as called
from duties.callers import flood as flood
from duties.callers import made as made
from journeys.cluster import make_webhook as make_webhook
from stores.conftest import entry as entry

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
