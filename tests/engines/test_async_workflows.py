"""Workflows and steps that are written with ``async def``."""

from collections.abc import AsyncIterator

import pytest

from engines.embedded_stage import AnswerEndpoint, Stage

FLOWS = """
    import asyncio

    @step
    async def fetch(number):
        mark("fetched", number)
        return {"number": number}

    @step
    def save(order):
        mark("saved", order["number"])

    @workflow("story")
    async def story(event):
        order = await fetch(event["fieldOne"])
        await asyncio.sleep(0)
        respond(order)
        sleep(0.3)
        save(order)
        mark("woke", order == await fetch("again") | {"number": event["fieldOne"]})

    attempts = 0
    @step(retries=2, wait=0.01)
    async def flaky():
        global attempts
        attempts += 1
        if attempts < 3:
            raise OSError("not yet")
        return attempts

    @step
    async def hopeless():
        raise LookupError("no such thing")

    @workflow("tries")
    async def tries(event):
        mark("flaky", await flaky())
        try:
            await hopeless()
        except StepFailed as failed:
            mark("hopeless", str(failed).replace(" ", "_"))

    @step
    async def both():
        return await asyncio.gather(fetch("1"), fetch("2"))

    @workflow("inside")
    async def inside(event):
        mark("both", len(await both()))

    @step
    async def slow(number):
        await asyncio.sleep(0.01)

    @workflow("beside")
    async def beside(event):
        await asyncio.gather(slow(1), slow(2))

    @workflow("group")
    async def group(event):
        async def part():
            sleep(0.1)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(part())
        mark("group")

    @workflow("blocks")
    async def blocks(event):
        while not marked("go"):
            time.sleep(0.01)

    @workflow("quick")
    async def quick(event):
        await slow(3)
"""


@pytest.fixture(scope="module")
async def stage(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    stage = Stage(tmp_path_factory.mktemp("async"))
    await stage.open(FLOWS)
    yield stage
    await stage.engine.close()


async def test_awaited_and_plain_steps_are_done_once_though_the_run_sleeps_in_between(stage: Stage) -> None:
    endpoint: AnswerEndpoint = stage.endpoint
    await stage.start("a.1", webhook_id="story", slot=endpoint.slot(), fieldOne="7")
    assert await stage.ended("a.1") == "completed"
    assert endpoint.answers[0]["body"] == {"number": "7"}
    assert (stage.marked("fetched")[:1], stage.marked("saved"), stage.marked("woke")) == (
        ["7"],
        ["7"],
        ["True"],
    )
    assert stage.marked("fetched").count("7") == 1
    [run] = await stage.engine.runs(delivery_key="a.1") or []
    assert [one.name for one in run.steps] == ["fetch", "respond", "sleep", "save", "fetch"]


async def test_an_awaited_step_is_tried_again_and_its_failure_can_be_caught(stage: Stage) -> None:
    await stage.start("b.1", webhook_id="tries")
    assert await stage.ended("b.1") == "completed"
    assert stage.marked("flaky") == ["3"]
    assert stage.marked("hopeless") == ["hopeless_failed:_LookupError:_no_such_thing"]


async def test_what_happens_at_the_same_moment_belongs_into_one_step(stage: Stage) -> None:
    await stage.start("c.1", webhook_id="inside")
    await stage.start("c.2", webhook_id="beside")
    assert await stage.ended("c.1") == "completed"
    assert stage.marked("both") == ["2"]
    assert await stage.ended("c.2") == "failed"
    [run] = await stage.engine.runs(delivery_key="c.2") or []
    assert "one after the other" in run.error


async def test_a_sleep_within_a_task_group_is_a_sleep(stage: Stage) -> None:
    await stage.start("d.1", webhook_id="group")
    assert await stage.ended("d.1") == "completed"
    assert stage.marked("group") == ["x"]


async def test_one_that_blocks_holds_up_no_other(stage: Stage) -> None:
    await stage.start("e.1", webhook_id="blocks")
    await stage.start("e.2", webhook_id="quick")
    assert await stage.ended("e.2") == "completed"
    stage.mark("go")
    assert await stage.ended("e.1") == "completed"
