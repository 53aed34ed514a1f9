"""What an answer and a run cost beside an accepted call, in one run: ``python -m bench.ratios [--against CHECKOUT]``.

Accepted calls with no engine are the measure: with as many callers at once, and with the most. Then, of the same program:
synchronous answers; runs of one and of five steps from a backlog, in the engine alone; and calls that each start a run of one step, accepted while the runs are worked
on: how many a second, and how many of the runs had ended when the last call was answered.
"""

import json
import sqlite3
import subprocess
import tempfile
import time
from contextlib import closing
from pathlib import Path

from bench.answers import BODY, HEADERS, WAITING, WORKFLOW
from bench.contestants import gateway
from bench.load import Measured, load
from bench.runs import MEASURE
from bench.versions import parser, versions, write

ONE_STEP = """
from postern.workflows import step, workflow

@step
def one():
    return {"paid": True}

@workflow
def flow(event):
    one()
"""
CALLERS = (1, 16, 64)
RUNS = {
    "one": ("runs of one step, engine alone", 10_000),
    "five": ("runs of five steps, engine alone", 1_000),
}


def called(
    python: str,
    engine: str,
    workflow: str,
    settings: tuple[str, ...],
    seconds: float,
    callers: tuple[int, ...],
) -> tuple[list[tuple[Measured, float]], float]:
    """Each measurement with the processor's µs a call; and the share of the runs that had ended with the last answer."""
    found = []
    with (
        tempfile.TemporaryDirectory() as folder,
        gateway(Path(folder) / "it", engine, workflow, settings, python) as one,
    ):
        headers = {**HEADERS, **one.headers}
        load(one.url, headers, BODY, 1.0, 4)
        for count in callers:
            time.sleep(1.0)  # what was begun before is over
            before = one.cpu_seconds()
            measured = load(one.url, headers, BODY, seconds, count)
            found.append((measured, (one.cpu_seconds() - before) / max(measured.calls, 1) * 1e6))
        ended = _ended(Path(folder) / "it" / "data" / "engine.db")
    return found, ended


def _ended(file: Path) -> float:
    if not file.exists():
        return 0.0
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as database:
        [(runs, over)] = database.execute("SELECT count(*), count(state) FROM runs").fetchall()
    return float(over / max(runs, 1))


def main() -> None:
    arguments = parser("python -m bench.ratios", (__doc__ or "").splitlines()[0])
    arguments.add_argument("--seconds", type=float, default=3.0)
    asked = arguments.parse_args()
    rows: list[list[str]] = []

    def tell(name: str, what: str, rate: float, accepted: float, most: float, cpu: float, *more: str) -> None:
        shares = [f"1/{measure / rate:.1f}" if rate else "-" for measure in (accepted, most)]
        rows.append([name, what, f"{rate:,.0f}", *shares, f"{cpu:,.0f}", *(more or ("", ""))])
        print(rows[-1], flush=True)

    for round in range(asked.rounds):
        for version, python in versions(asked.against):
            name = f"{version}, round {round + 1}"
            plain, _ = called(python, "none", WORKFLOW, (), asked.seconds, CALLERS)
            accepted = {callers: one.rate for callers, (one, _) in zip(CALLERS, plain, strict=True)}
            most = accepted[CALLERS[-1]]
            for callers, (one, cpu) in zip(CALLERS, plain, strict=True):
                what = f"accepted calls, no engine, {callers} at once"
                tell(name, what, one.rate, one.rate, most, cpu, f"{one.p50:.1f}", str(one.failed))
            answers, _ = called(python, "embedded", WORKFLOW, WAITING, asked.seconds, CALLERS)
            for callers, (one, cpu) in zip(CALLERS, answers, strict=True):
                what = f"synchronous answers, {callers} at once"
                tell(name, what, one.rate, accepted[callers], most, cpu, f"{one.p50:.1f}", str(one.failed))
            for kind, (what, starts) in RUNS.items():
                command = [python, "-c", MEASURE, kind, str(starts)]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                result = json.loads(done.stdout.splitlines()[-1])
                tell(name, what, result["rate"], most, most, result["engine"])
            [(beside, cpu)], ended = called(python, "embedded", ONE_STEP, (), asked.seconds, (64,))
            what = f"accepted beside their runs ({ended:.0%} of them had ended)"
            tell(name, what, beside.rate, most, most, cpu, f"{beside.p50:.1f}", str(beside.failed))
    heading = [
        "",
        "",
        "a second",
        "of accepted with as many callers",
        "with 64",
        "CPU each, µs",
        "p50 ms",
        "failed",
    ]
    write("Beside accepted calls", f"{asked.seconds:g} s each", heading, rows, 0)


if __name__ == "__main__":
    main()
