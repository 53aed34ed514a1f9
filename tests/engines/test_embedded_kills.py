"""The engine process alone is killed again and again in the middle of runs: every run ends, and no step whose
result is recorded is done again. More rounds: ``KILLS=200 pytest tests/engines/test_embedded_kills.py``."""

import asyncio
import os
import random
import signal
import sqlite3
from collections import Counter
from contextlib import closing

import pytest

from engines.embedded_stage import Stage, until

KILLS = int(os.environ.get("KILLS", "12"))
RUNS_A_ROUND = 4

FIVE_STEPS = """
    @step
    def effect(run, number):
        mark("effects", f"{run}/{number}")
        time.sleep(0.01)
        return number
    @workflow
    def flow(event):
        for number in range(5):
            assert effect(event["invocationId"], number) == number
    """


def effects(stage: Stage) -> Counter[str]:
    return Counter(stage.marked("effects"))


def recorded(stage: Stage) -> set[str]:
    """Run and number of every step on disk, as the effects are called."""
    with closing(sqlite3.connect(stage.data / "engine.db")) as database:
        rows = database.execute("SELECT delivery, position FROM runs JOIN steps ON run = seq").fetchall()
    return {f"{delivery.removesuffix('.1')}/{position}" for delivery, position in rows}


async def test_no_recorded_step_is_done_again_and_every_run_ends(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("postern.engines.embedded.supervisor.LONGEST_PAUSE_ONCE_READY", 0.05)
    dice = random.Random(20261121)
    engine = await stage.open(FIVE_STEPS)
    keys: list[str] = []
    done_when_recorded: dict[str, int] = {}
    for round in range(KILLS):
        await stage.up()
        begun = [f"inv{round}x{number}.1" for number in range(RUNS_A_ROUND)]
        keys += begun
        starts = [asyncio.create_task(stage.start(key)) for key in begun]
        await asyncio.sleep(dice.random() * 0.1)
        process = engine.process_id
        assert process
        os.kill(process, signal.SIGSTOP)  # so that both are read as the process left them
        seen = effects(stage)
        for step in recorded(stage):
            done_when_recorded.setdefault(step, seen[step])
        os.kill(process, signal.SIGKILL)
        await until(lambda killed=process: engine.process_id not in (killed, None))
        await asyncio.gather(*starts)
    for key in keys:
        assert await stage.ended(key) == "completed"
    done = effects(stage)
    assert {step: done[step] for step in done_when_recorded} == done_when_recorded
    assert set(done) == {f"{key.removesuffix('.1')}/{number}" for key in keys for number in range(5)}
    # A step may be done again that was interrupted before it was recorded; nothing else.
    assert sum(done.values()) - len(done) <= KILLS * RUNS_A_ROUND * 2
