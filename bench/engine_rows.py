"""Does a long list of finished runs slow the embedded engine down? ``python -m bench.engine_rows [--rows 1000000]``:
the same questions with none and with that many in engine.db."""

import argparse
import asyncio
import os
import platform
import sqlite3
import tempfile
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

from bench.__main__ import RESULTS
from bench.rooms import table
from postern.core.deliveries.delivery import Trigger
from postern.engines.embedded.engine import EmbeddedEngine
from postern.engines.embedded.journal import Journal
from postern.engines.embedded.runs import WorkflowRuns

FLOWS = """
from postern.workflows import sleep, step, workflow
@step
def one(): return {"paid": True}
@workflow
def flow(event): one()
@workflow("wh_sleeps")
def sleeps(event): sleep(3600)
"""
STARTS = 300
UNFINISHED = 200
PRUNED = 2_000

_ENDED = """
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
INSERT INTO runs (seq, delivery, workflow, event, started_at, state, ended_at)
SELECT i, printf('inv_%026d.1', i), 'flow', '{"webhookId": "wh_1", "fieldOne": "1001", "payload": {"orderNumber": "1001"}}',
  ?2 + i * 0.01, 'completed', ?2 + i * 0.01 FROM n
"""
_STEPS = "INSERT INTO steps (run, position, name, result) SELECT seq, 0, 'one', '{\"paid\": true}' FROM runs"
_UNFINISHED = """
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
INSERT INTO runs (delivery, workflow, event, started_at)
SELECT printf('left_%020d.1', i), 'flow', '{"webhookId": "wh_1", "payload": {}}', ?2 FROM n
"""


def prepared(folder: Path, ended: int, too_old: int) -> None:
    """Ended runs, a few of them older than runs are kept, and some that were left in the middle."""
    folder.mkdir(mode=0o700)
    Journal(folder / "engine.db").close()
    now = time.time()
    with sqlite3.connect(folder / "engine.db") as connection:
        connection.execute(_ENDED, (ended + too_old, now - 3600 - (ended + too_old) * 0.01))
        connection.execute("UPDATE runs SET ended_at = ended_at - 864000 WHERE seq <= ?", (too_old,))
        connection.execute(_STEPS)
        connection.execute(_UNFINISHED, (UNFINISHED, now))
    connection.close()


async def milliseconds(action: Callable[[], Awaitable[object]]) -> float:
    began = time.perf_counter()
    await action()
    return (time.perf_counter() - began) * 1000


async def measure(folder: Path, ended: int) -> list[str]:
    data, file = folder / "data", folder / "flows.py"
    file.write_text(FLOWS)
    prepared(data, ended, PRUNED)
    engine = EmbeddedEngine(data, file, keep_runs_days=7, log="off")

    async def until_all_have_ended() -> None:
        await engine.open()
        while not (await engine.health()).ok:
            await asyncio.sleep(0.01)
        await engine.ended(f"left_{UNFINISHED:020d}.1")

    resumed = await milliseconds(until_all_have_ended)
    numbers = iter(range(10 * STARTS))

    def trigger() -> Trigger:
        key = f"new{next(numbers)}"
        return Trigger(f"{key}.1", "wh_1", key, {}, b"{}")

    async def many() -> None:
        for _ in range(STARTS):
            await engine.start(trigger())

    await many()
    start = min([await milliseconds(many) for _ in range(3)]) / STARTS
    newest = min([await milliseconds(engine.runs) for _ in range(20)])
    of_one = min([await milliseconds(lambda: engine.runs(delivery_key="new5.1")) for _ in range(20)])
    ends = min([await milliseconds(lambda: engine.ends(["new6.1"] * 100)) for _ in range(20)])
    await engine.close()
    pruned = await pruning(data)
    return [
        f"{ended:,}",
        *(f"{value:.2f}" for value in (start, newest, of_one, ends)),
        f"{resumed:.0f}",
        f"{pruned:.1f}",
    ]


async def pruning(data: Path) -> float:
    """Milliseconds of one step of it, the file closed again afterwards."""
    runs = WorkflowRuns(data / "engine.db", (), keep_seconds=7 * 86400, at_once=1, answer=lambda *_: False)
    try:
        best = float("inf")
        for _ in range(3):
            began = time.perf_counter()
            runs._journal.write(runs._housekeeping.prune)
            best = min(best, time.perf_counter() - began)
        return best * 1000
    finally:
        runs.finish(0)


def main() -> None:
    arguments = argparse.ArgumentParser(prog="python -m bench.engine_rows", description=__doc__)
    arguments.add_argument("--rows", type=int, default=1_000_000)
    asked = arguments.parse_args()
    rows = []
    for ended in (0, asked.rows, 0, asked.rows):
        with tempfile.TemporaryDirectory() as folder:
            rows.append(asyncio.run(measure(Path(folder), ended)))
            print(rows[-1], flush=True)
    heading = ["finished runs", "start, ms", "newest 50, ms", "of one delivery, ms", "100 ends, ms"]
    text = table([*heading, f"resume of {UNFINISHED}, process included, ms", "pruning 500, ms"], rows)
    print(text)
    now = datetime.now(UTC)
    where = f"Python {platform.python_version()}, {len(os.sched_getaffinity(0))} cores, load average {os.getloadavg()[0]:.1f}"
    with (RESULTS / f"{now:%Y-%m-%d}.md").open("a") as file:
        file.write(
            f"# Finished runs in engine.db, {now:%Y-%m-%d %H:%M} UTC\n\n{where}. Starts one after the other.\n\n{text}\n\n"
        )


if __name__ == "__main__":
    main()
