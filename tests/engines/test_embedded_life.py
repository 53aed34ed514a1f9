"""Runs and deliveries when the engine process, the gateway or a workflow file goes wrong."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from engines.embedded_stage import AnswerEndpoint, OftenLooking, Stage, gone, resident_kilobytes, until
from postern.core.deliveries.delivery import EngineUnavailable, Trigger
from postern.engines.embedded.engine import EmbeddedEngine

TWO_STEPS = """
    @step
    def first():
        mark("first")
        return 7
    @step
    def second(value):
        mark("second", value)
        while not marked("go"):
            time.sleep(0.02)
    @workflow
    def flow(event):
        second(first())
        mark("told", respond({"done": True}))
    """
GOES_ON_WHEN_TOLD = """
    @step
    def first(): mark("first")
    @workflow
    def flow(event):
        first()
        sleep_until_told()
        mark("after", "good")
    """


async def test_before_the_process_is_there_the_engine_is_unavailable_and_says_so(stage: Stage) -> None:
    engine = await stage.open(TWO_STEPS)
    health = await engine.health()
    assert (health.ok, health.detail) == (False, "the engine process is starting")
    with pytest.raises(EngineUnavailable):
        await engine.start(Trigger("inv.1", "wh_1", "inv", {}, b"{}"))


@pytest.mark.skipif(sys.platform != "linux", reason="a policy of Linux")
async def test_no_thread_of_the_process_interrupts_who_is_at_work(
    stage: Stage, endpoint: AnswerEndpoint
) -> None:
    engine = await stage.open(TWO_STEPS)
    await stage.start("inv.1", slot=endpoint.slot())
    await until(lambda: stage.marked("second"))
    threads = [int(thread.name) for thread in Path(f"/proc/{engine.process_id}/task").iterdir()]
    assert len(threads) > 3
    assert {os.sched_getscheduler(thread) for thread in threads} == {os.SCHED_BATCH}
    assert os.sched_getscheduler(0) == os.SCHED_OTHER
    stage.mark("go")


async def test_a_failed_step_replays_as_the_same_failure(stage: Stage) -> None:
    await stage.open("""
        @step
        def breaks():
            mark("tried")
            raise LookupError("no such order")
        @step
        def hold():
            mark("in")
            while not marked("go"):
                time.sleep(0.02)
        @workflow
        def flow(event):
            try:
                breaks()
            except StepFailed as failed:
                mark("heard", str(failed).replace(" ", "_"))
            hold()
        """)
    await stage.start("inv.1")
    await until(lambda: stage.marked("in"))
    os.kill(stage.process, signal.SIGKILL)
    await until(lambda: len(stage.marked("in")) == 2)
    stage.mark("go")
    assert await stage.ended("inv.1") == "completed"
    assert stage.marked("tried") == ["x"]
    assert stage.marked("heard") == ["breaks_failed:_LookupError:_no_such_order"] * 2


async def test_an_edit_is_picked_up_and_strands_no_unfinished_run(stage: Stage) -> None:
    engine = await stage.open(GOES_ON_WHEN_TOLD)
    await stage.start("inv.1")
    await until(lambda: stage.marked("first"))
    before = engine.process_id
    stage.write(GOES_ON_WHEN_TOLD.replace("good", "new") + "@workflow\n    def another(event): pass\n")
    await until(lambda: engine.process_id not in (before, None))
    stage.mark("on")
    assert await stage.ended("inv.1") == "completed"
    assert (stage.marked("first"), stage.marked("after")) == (["x"], ["new"])
    assert [workflow.name for workflow in await engine.workflows() or []] == ["flow", "another"]


async def test_a_running_workflow_is_let_finish_before_an_edit_takes_over(stage: Stage) -> None:
    engine = await stage.open(TWO_STEPS)
    await stage.start("inv.1")
    await until(lambda: stage.marked("second"))
    stage.write(TWO_STEPS.replace("def first():", "def first():  # edited"))
    await stage.health_says("starting again")
    stage.mark("go")
    await stage.up()
    assert await stage.ended("inv.1") == "completed"
    assert stage.marked("second") == ["7"]
    assert engine.process_id


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        ("def flow(:\n", "flows.py, line 5: "),
        ("import no_such_library\n", "ModuleNotFoundError: No module named 'no_such_library'"),
        ("raise SystemExit('not today')\n", "SystemExit: not today"),
        (
            "@workflow\ndef flow(event): pass\n@workflow(name='flow')\ndef other(event): pass\n",
            "two workflows are called flow",
        ),
    ],
)
async def test_a_broken_file_holds_deliveries_until_it_is_mended(
    stage: Stage, broken: str, words: str
) -> None:
    stage.file.write_text("from postern.workflows import workflow\n\n\n\n" + broken)
    engine = await stage.open()
    await stage.health_says("workflows file has an error: ")
    assert words in (await engine.health()).detail
    with pytest.raises(EngineUnavailable, match="workflows file has an error"):
        await engine.start(Trigger("inv.1", "wh_1", "inv", {}, b"{}"))
    with pytest.raises(EngineUnavailable, match="workflows file has an error"):
        await engine.workflows()  # none is known, which is not that there are none
    assert engine.process_id is None
    stage.write("""
        @workflow
        def flow(event): pass
        """)
    assert (await stage.start("inv.1")).runs == 1


async def test_a_file_that_breaks_goes_on_with_its_last_good_version_until_it_is_mended(stage: Stage) -> None:
    engine = await stage.open(GOES_ON_WHEN_TOLD)
    await stage.start("inv.1")
    await until(lambda: stage.marked("first"))

    async def problems(expected: tuple[str, ...]) -> None:
        async def are() -> bool:
            health = await engine.health()
            return health.ok and health.problems == expected

        await until(are)

    for broken in ("def (:", "import (:"):
        stage.file.write_text(broken)
        await problems(("flows.py, line 1: invalid syntax; the last good version of flows.py goes on",))
    assert (await stage.start("inv.2")).runs == 1
    stage.mark("on")
    assert [await stage.ended(key) for key in ("inv.1", "inv.2")] == ["completed"] * 2
    assert (stage.marked("first"), stage.marked("after")) == (["x"] * 2, ["good"] * 2)
    stage.write(GOES_ON_WHEN_TOLD.replace("good", "mended"))
    await problems(())
    await stage.start("inv.3")
    assert await stage.ended("inv.3") == "completed"
    assert stage.marked("after")[2:] == ["mended"]


async def test_calls_that_may_be_for_a_file_that_cannot_be_loaded_wait_for_it(
    stage: Stage, tmp_path: Path
) -> None:
    folder = tmp_path / "flows"
    folder.mkdir()
    stage.file = folder / "a.py"
    stage.write('@workflow("wh_a")\ndef a(event): pass\n')
    (folder / "b.py").write_text("def (:")
    engine = stage.engine = EmbeddedEngine(stage.data, folder, watch=OftenLooking())
    await engine.open()
    await stage.up()
    problem = "b.py, line 1: invalid syntax; the workflows of b.py are missing, and calls that no other one wants wait"
    assert (await engine.health()).problems == (problem,)
    assert (await stage.start("inv.1", webhook_id="wh_a")).runs == 1
    with pytest.raises(EngineUnavailable, match="no workflow wants it, but b") as trouble:
        await engine.start(Trigger("inv.2", "wh_b", "inv", {}, b"{}"))
    assert trouble.value.only_this
    stage.write('@workflow("wh_b")\ndef b(event): mark("b")\n', folder / "b.py")
    assert (await stage.start("inv.2", webhook_id="wh_b")).runs == 1
    await until(lambda: stage.marked("b"))
    assert (await stage.start("inv.3", webhook_id="wh_nobody")).runs == 0


async def test_a_missing_file_is_an_error_and_a_missing_folder_is_made(stage: Stage, tmp_path: Path) -> None:
    await stage.open()
    await stage.health_says("flows.py does not exist")
    folder = tmp_path / "flows"
    engine = EmbeddedEngine(tmp_path / "other", folder)
    await engine.open()
    stage.engine, first = engine, stage.engine
    await first.close()
    await stage.up()
    assert (await stage.start("inv.1")).runs == 0
    stage.write("@workflow\ndef one(event): pass\n", folder / "one.py")
    stage.write("from one import mark\n@workflow\ndef two(event): pass\n", folder / "two.py")

    async def both() -> bool:
        return {workflow.name for workflow in await engine.workflows() or []} == {"one", "two"}

    await until(both)


async def test_a_run_whose_workflow_is_gone_is_shown_and_goes_on_when_it_is_back(stage: Stage) -> None:
    source = """
        @workflow("going")
        def going(event):
            sleep_until_told()
            mark("going")
        @workflow("staying")
        def staying(event):
            sleep_until_told()
            mark("staying")
        """
    engine = await stage.open(source)
    await stage.start("a.1", webhook_id="going")
    await stage.start("b.1", webhook_id="staying")
    before = engine.process_id
    stage.write(source.replace("def going", "def renamed"))
    await until(lambda: engine.process_id not in (before, None))
    stage.mark("on")
    assert await stage.ended("b.1") == "completed"
    run = (await engine.runs(5, "a.1") or [])[0]
    assert run.state in ("running", "waiting")
    assert "going is no longer in the workflow files" in run.error
    stage.write(source)
    assert await stage.ended("a.1") == "completed"
    assert (stage.marked("staying"), stage.marked("going")) == (["x"], ["x"])


async def test_a_run_that_finds_other_steps_than_it_recorded_fails_and_says_so(stage: Stage) -> None:
    source = """
        @step
        def first(): mark("first")
        @step
        def second(): mark("second")
        @workflow
        def flow(event):
            first()
            sleep_until_told()
        """
    engine = await stage.open(source)
    await stage.start("inv.1")
    await until(lambda: stage.marked("first"))
    stage.write(source.replace("            first()\n", "            second()\n"))
    assert await stage.ended("inv.1") == "failed"
    assert "second" in (await engine.runs() or [])[0].error
    assert stage.marked("second") == []


async def test_a_process_that_keeps_dying_is_started_again_with_pauses(stage: Stage) -> None:
    await stage.open("""
        mark("started")
        os.kill(os.getpid(), 9)
        """)
    await stage.health_says("ended unexpectedly (exit -9)")
    await until(lambda: len(stage.marked("started")) >= 3)
    stage.write("""
        @workflow
        def flow(event): pass
        """)
    assert (await stage.start("inv.1")).runs == 1


async def test_ctrl_c_and_a_service_managers_stop_leave_the_engine_to_the_gateway(stage: Stage) -> None:
    engine = await stage.open(TWO_STEPS)
    await stage.up()
    process = stage.process
    os.kill(process, signal.SIGINT)
    os.kill(process, signal.SIGTERM)
    stage.mark("go")
    await stage.start("inv.1")
    assert await stage.ended("inv.1") == "completed"
    assert engine.process_id == process


GATEWAY = """
import asyncio, sys
from pathlib import Path
from postern.engines.embedded.engine import EmbeddedEngine
from postern.core.deliveries.delivery import Trigger
from postern.observe.logs import set_up_logs

async def main():
    set_up_logs("off")
    engine = EmbeddedEngine(Path(sys.argv[1]), Path(sys.argv[2]))
    await engine.open()
    while not (await engine.health()).ok:
        await asyncio.sleep(0.02)
    await engine.start(Trigger("inv.1", "wh_1", "inv", {}, b"{}"))
    print(engine.process_id, flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""


async def test_a_killed_gateway_leaves_no_engine_process_behind_and_loses_no_run(stage: Stage) -> None:
    stage.write(TWO_STEPS)
    gateway = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", GATEWAY, str(stage.data), str(stage.file)), stdout=asyncio.subprocess.PIPE
    )
    assert gateway.stdout
    engine_process = int(await gateway.stdout.readline())
    await until(lambda: stage.marked("second"))
    gateway.kill()
    await gateway.wait()
    await stage.open()  # the next gateway comes at once: its engine process waits for the old one to go
    await stage.up()
    assert gone(engine_process)
    stage.mark("go")
    assert await stage.ended("inv.1") == "completed"
    assert stage.marked("first") == ["x"]


async def test_at_rest_the_engine_process_is_small(stage: Stage) -> None:
    await stage.open(TWO_STEPS)
    await stage.up()
    resident = resident_kilobytes(stage.process)
    assert resident < 50_000, f"{resident} kB"
