"""Workflows that misbehave and files that go away: the effect on other runs, and what health says."""

import asyncio
import os
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from engines.embedded_stage import Stage, resident_kilobytes, until
from postern.core.deliveries.delivery import EngineUnavailable
from postern.engines.embedded import at_work
from postern.engines.embedded.at_work import AtWork


async def test_a_run_that_holds_the_interpreter_is_put_aside_and_the_others_run(stage: Stage) -> None:
    engine = await stage.open(
        """
        import ctypes
        from postern.engines.embedded import housekeeping
        housekeeping.LONGEST_SUSPENSION = 0.3
        @workflow("stuck")
        def stuck(event):
            mark("stuck")
            ctypes.PyDLL(None).sleep(3600)  # as a bad regular expression holds it, and no processor
        @workflow("good")
        def good(event):
            mark("good", event["invocationId"])
        """,
        hangs_after=2.0,
    )
    await stage.up()
    await stage.start("s.1", webhook_id="stuck")
    await stage.health_says("held by a workflow")
    for number in range(10):
        await stage.start(f"g{number}.1", webhook_id="good")
    assert await stage.ended("s.1") == "failed"
    for number in range(10):
        assert await stage.ended(f"g{number}.1") == "completed"
    assert len(stage.marked("stuck")) == 3
    assert len(set(stage.marked("good"))) == 10
    [run] = await engine.runs(5, "s.1") or []
    assert run.error.startswith("put aside: again and again the engine process died or hung")
    await stage.up()


async def test_a_run_that_ends_the_process_is_put_aside_and_one_beside_it_is_not(stage: Stage) -> None:
    await stage.open(
        """
        from postern.engines.embedded import housekeeping
        housekeeping.LONGEST_SUSPENSION = 0.3
        @step
        def long():
            mark("long")
            while not marked("go"):
                time.sleep(0.02)
        @workflow("patient")
        def patient(event):
            long()
        @workflow("bad")
        def bad(event):
            mark("bad")
            os._exit(7)
        """,
        hangs_after=2.0,
    )
    await stage.start("p.1", webhook_id="patient")
    await until(lambda: stage.marked("long"))
    await stage.start("b.1", webhook_id="bad")
    assert await stage.ended("b.1") == "failed"
    stage.mark("go")
    assert await stage.ended("p.1") == "completed"
    assert len(stage.marked("bad")) == 3


async def test_runs_at_work_come_back_together_when_the_process_was_killed_once(stage: Stage) -> None:
    await stage.open(
        """
        @step
        def long(name):
            mark(name)
            while not marked("go"):
                time.sleep(0.02)
        @workflow
        def flow(event): long(event["invocationId"])
        """,
        hangs_after=600.0,
    )
    ids = [f"inv{number}" for number in range(12)]
    for id in ids:
        await stage.start(f"{id}.1")
    await until(lambda: all(stage.marked(id) for id in ids))
    os.kill(stage.process, signal.SIGKILL)
    # One after the other, each would wait for ten minutes.
    await until(lambda: all(len(stage.marked(id)) == 2 for id in ids))
    stage.mark("go")
    for id in ids:
        assert await stage.ended(f"{id}.1") == "completed"


def test_what_was_at_work_is_known_until_the_machine_is_started_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "engine.working"
    AtWork(file, 4).begins(3, 7)
    for places in (2, 5):
        assert AtWork(file, places).left_behind == [7]
    monkeypatch.setattr(at_work, "_this_boot", lambda: b"another boot, 16")
    for _ in range(2):
        assert AtWork(file, 5).left_behind == []


async def test_a_process_that_stands_still_is_reported_and_replaced(stage: Stage) -> None:
    engine = await stage.open(
        """
        @workflow
        def flow(event): mark("ran")
        """,
        hangs_after=2.0,
    )
    await stage.up()
    stopped = stage.process
    os.kill(stopped, signal.SIGSTOP)
    await stage.health_says("has been silent for")
    await until(lambda: engine.process_id not in (stopped, None))
    await stage.start("inv.1")
    assert await stage.ended("inv.1") == "completed"


async def test_a_journal_that_is_deleted_is_written_anew_and_nothing_is_lost(stage: Stage) -> None:
    engine = await stage.open("""
        @step
        def first(): mark("first")
        @workflow("sleeps")
        def sleeps(event):
            first()
            sleep_until_told()
            mark("awake")
        @workflow("quick")
        def quick(event): mark("quick", event["invocationId"])
        """)
    await stage.start("s.1", webhook_id="sleeps")
    await until(lambda: stage.marked("first"))
    await stage.start("q0.1", webhook_id="quick")
    before = engine.process_id
    for file in stage.data.glob("engine.db*"):
        file.unlink()
    # What is said to be started is on disk, in the file that there is then.
    for number in range(1, 20):
        await stage.start(f"q{number}.1", webhook_id="quick")
    await until(lambda: engine.process_id not in (before, None))
    stage.mark("on")
    assert await stage.ended("s.1") == "completed"
    for number in range(20):
        assert await stage.ended(f"q{number}.1") == "completed"
    assert (stage.marked("first"), stage.marked("awake")) == (["x"], ["x"])
    assert {f"q{number}" for number in range(20)} == set(stage.marked("quick"))
    assert len(await engine.runs(50) or []) == 21


async def test_a_journal_that_is_replaced_does_not_get_the_log_of_the_one_before(stage: Stage) -> None:
    engine = await stage.open("""
        @workflow
        def flow(event): pass
        """)

    async def runs(first: int, count: int) -> None:
        for number in range(first, first + count):
            await stage.start(f"inv{number}.1", filler="x" * 20_000)
            await stage.ended(f"inv{number}.1")

    await runs(0, 10)
    file, backup = stage.data / "engine.db", stage.folder / "backup"
    with closing(sqlite3.connect(file)) as reading, closing(sqlite3.connect(backup)) as writing:
        reading.backup(writing)
    await runs(10, 30)
    before = engine.process_id
    backup.replace(file)
    await until(lambda: engine.process_id not in (before, None))
    await stage.up()
    assert len(await engine.runs(200) or []) == 10
    await runs(40, 10)
    await engine.close()
    with closing(sqlite3.connect(file)) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert (stage.data / "engine.db-wal.left").exists()


async def test_damage_to_an_open_journal_is_reported_as_soon_as_it_is_met(stage: Stage) -> None:
    """What the engine has read of the file it knows without it; what it has to read again is not what it wrote."""
    engine = await stage.open("""
        @workflow
        def flow(event): pass
        """)
    await stage.up()
    keys = [f"inv{number}.1" for number in range(20)]
    await asyncio.gather(*(stage.start(key) for key in keys))
    assert set(await asyncio.gather(*(stage.ended(key) for key in keys))) == {"completed"}
    file = stage.data / "engine.db"
    with closing(sqlite3.connect(file)) as other:  # all of it into the file itself
        assert other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone() == (0, 0, 0)
    whole = file.read_bytes()
    with file.open("r+b") as damaged:
        damaged.seek(4096)
        damaged.write(b"\xa5" * (len(whole) - 4096))
    os.kill(stage.process, signal.SIGKILL)  # the next one reads everything anew
    await stage.health_says("malformed")
    with pytest.raises(EngineUnavailable):
        await engine.start(stage.trigger("inv20.1"))
    file.write_bytes(whole)
    await stage.up()
    await stage.start("inv20.1")
    assert await stage.ended("inv20.1") == "completed"


async def test_a_thousand_runs_that_wait_in_a_step_take_turns_on_a_bounded_number_of_threads(
    stage: Stage,
) -> None:
    await stage.open("""
        import threading
        @step
        def wait():
            time.sleep(0.2)
            mark("threads", threading.active_count())
        @workflow
        def flow(event): wait()
        """)
    await stage.up()
    keys = [f"inv{number}.1" for number in range(1000)]
    await asyncio.gather(*(stage.start(key) for key in keys))
    assert set(await asyncio.gather(*(stage.ended(key) for key in keys))) == {"completed"}
    threads = [int(count) for count in stage.marked("threads")]
    assert len(threads) == 1000
    assert 100 <= max(threads) <= 110
    assert resident_kilobytes(stage.process) < 80_000


async def test_a_workflow_with_a_limit_of_its_own_never_has_more_runs_at_work(stage: Stage) -> None:
    await stage.open("""
        import threading
        at_work, most, lock = 0, 0, threading.Lock()
        @step
        def work():
            global at_work, most
            with lock:
                at_work += 1
                most = max(most, at_work)
            time.sleep(0.02)
            with lock:
                at_work -= 1
            return most
        @workflow("limited", at_once=2)
        def limited(event):
            mark("most", work())
        @workflow("others")
        def others(event):
            mark("others")
        """)
    await asyncio.gather(*(stage.start(f"l{number}.1", webhook_id="limited") for number in range(30)))
    await stage.start("o.1", webhook_id="others")
    assert await stage.ended("o.1") == "completed"
    for number in range(30):
        await stage.ended(f"l{number}.1")
    assert max(map(int, stage.marked("most"))) == 2
    assert len(stage.marked("most")) == 30


async def test_a_backlog_larger_than_memory_is_worked_off_in_full(stage: Stage) -> None:
    """More runs of one workflow than are held in memory, left by a process that was killed, and new ones."""
    await stage.open("""
        @workflow(at_once=4)
        def flow(event):
            if marked("go"):
                mark("ran", event["invocationId"])
            else:
                while not marked("go"):
                    time.sleep(0.02)
                mark("ran", event["invocationId"])
        """)
    keys = [f"inv{number}.1" for number in range(900)]
    await asyncio.gather(*(stage.start(key) for key in keys))
    os.kill(stage.process, signal.SIGKILL)
    stage.mark("go")
    more = [f"more{number}.1" for number in range(50)]
    await asyncio.gather(*(stage.start(key) for key in more))
    assert set(await asyncio.gather(*(stage.ended(key) for key in keys + more))) == {"completed"}
    assert len(set(stage.marked("ran"))) == 950


async def test_many_runs_leave_neither_memory_nor_file_handles_behind(stage: Stage) -> None:
    await stage.open("""
        @step
        def one(): return "x" * 1000
        @workflow
        def flow(event):
            one()
            sleep(0.06)
        """)
    await stage.up()
    process = stage.process

    async def thousand(name: str) -> tuple[int, int]:
        keys = [f"{name}{number}.1" for number in range(1000)]
        await asyncio.gather(*(stage.start(key) for key in keys))
        await asyncio.gather(*(stage.ended(key) for key in keys))
        return resident_kilobytes(process), len(list(Path(f"/proc/{process}/fd").iterdir()))

    await thousand("warm")
    memory, handles = await thousand("a")
    for name in ("b", "c"):
        memory_now, handles_now = await thousand(name)
    assert handles_now == handles
    assert memory_now < memory + 6_000
