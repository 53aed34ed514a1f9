"""Measures this version beside another checkout of it, in turn in the same run: ``--against FOLDER``, with its
``.venv``."""

import argparse
import sys
from pathlib import Path

from bench.rooms import keep, table

Versions = list[tuple[str, str]]
"""Names and their Python interpreters."""


def parser(program: str, description: str | None) -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog=program, description=description)
    made.add_argument("--against", type=Path, help="another checkout, installed in its .venv")
    made.add_argument("--rounds", type=int, default=2, help="how often, in turn")
    return made


def versions(against: Path | None) -> Versions:
    found = [("this version", sys.executable)]
    if against is not None:
        found.insert(0, (f"the other ({against.name})", str(against / ".venv" / "bin" / "python")))
    return found


def write(title: str, how: str, heading: list[str], rows: list[list[str]], sync_takes: int) -> None:
    disk = f"each sync made to take {sync_takes / 1000:g} ms" if sync_takes else "this machine's disk"
    keep(title, f"{disk}; {how}. Trust the ratios.", table(heading, rows))
