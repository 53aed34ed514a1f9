"""The promises to a workflow while it runs in the embedded engine."""

import asyncio
import sqlite3
from contextlib import closing

import pytest

from engines.embedded_stage import AnswerEndpoint, Stage, until
from postern.core.answer import InvalidResponse
from postern.core.deliveries.delivery import EngineRejected, Trigger
from postern.core.history.invocation import StoreUnavailable


async def test_a_trigger_starts_a_run_that_gets_the_whole_event(stage: Stage) -> None:
    await stage.open("""
        @workflow
        def flow(event):
            mark("got", ",".join([event["webhookId"], event["fieldOne"], event["fieldFour"], event["invocationId"]]))
            mark("payload", event["payload"]["n"] == 10**30)
        """)
    started = await stage.start("inv.1", fieldOne="1001")
    assert (started.runs, started.workflows) == (1, ("flow",))
    assert await stage.ended("inv.1") == "completed"
    assert stage.marked("got") == ["wh_1,1001,,inv"]
    assert stage.marked("payload") == ["True"]


async def test_a_workflow_with_a_condition_runs_for_its_webhooks_only(stage: Stage) -> None:
    engine = await stage.open("""
        @workflow
        def every(event): pass
        @workflow("wh_1")
        def one(event): pass
        @workflow(["wh_2", "wh_3"], name="two of them")
        def two(event): "Says\\n    what it does."
        @workflow(webhook_id="")
        def unset(event): pass
        """)
    assert (await stage.start("a.1", webhook_id="wh_1")).workflows == ("every", "one", "unset")
    assert (await stage.start("b.1", webhook_id="wh_3")).workflows == ("every", "two of them", "unset")
    known = {workflow.name: workflow for workflow in await engine.workflows() or []}
    assert known["two of them"].webhook_ids == ("wh_2", "wh_3")
    assert known["two of them"].help == "Says what it does."
    assert known["two of them"].source.startswith("flows.py:")


async def test_nobody_listens_is_zero_runs_and_ends_at_once(stage: Stage) -> None:
    await stage.open("""
        @workflow("another")
        def flow(event): pass
        """)
    assert (await stage.start("inv.1")).runs == 0
    assert await stage.ended("inv.1") == "completed"


async def test_the_first_answer_wins_and_the_second_hears_false(
    stage: Stage, endpoint: AnswerEndpoint
) -> None:
    await stage.open("""
        @workflow
        def flow(event):
            mark("first", respond({"orders": []}, status=201, headers={"X-Kind": "test"}))
            mark("second", respond("too late"))
        """)
    await stage.start("inv.1", slot=endpoint.slot())
    assert await stage.ended("inv.1") == "completed"
    assert endpoint.answers == [
        {"key": "inv.1", "status": 201, "headers": {"X-Kind": "test"}, "body": {"orders": []}}
    ]
    assert (stage.marked("first"), stage.marked("second")) == (["True"], ["False"])


TOLD = """
    @workflow
    def flow(event):
        mark("told", respond({}))
    """


async def test_an_answer_the_gateway_refuses_fails_the_run_with_its_reason(
    stage: Stage, endpoint: AnswerEndpoint
) -> None:
    engine = await stage.open(TOLD)
    endpoint.refuse_with = InvalidResponse("body", "the body may have 1 MiB")
    await stage.start("inv.1", slot=endpoint.slot())
    assert await stage.ended("inv.1") == "failed"
    assert "did not take the answer: the body may have 1 MiB" in (await engine.runs() or [])[0].error


async def test_an_answer_that_cannot_be_stored_for_a_moment_is_handed_over_again(
    stage: Stage, endpoint: AnswerEndpoint
) -> None:
    await stage.open(TOLD)
    endpoint.refuse_with = StoreUnavailable("disk full")
    await stage.start("inv.1", slot=endpoint.slot())
    await until(lambda: endpoint.asked >= 2)
    endpoint.refuse_with = None
    assert await stage.ended("inv.1") == "completed"
    assert stage.marked("told") == ["True"]


async def test_an_answer_that_cannot_be_stored_is_given_up_at_the_deadline_and_the_run_goes_on(
    stage: Stage, endpoint: AnswerEndpoint
) -> None:
    await stage.open(TOLD)
    endpoint.refuse_with = StoreUnavailable("disk full")
    await stage.start("inv.1", slot=endpoint.slot(seconds=0.8))
    assert await stage.ended("inv.1") == "completed"
    assert stage.marked("told") == ["False"]


async def test_one_failed_workflow_of_several_means_failed(stage: Stage) -> None:
    engine = await stage.open("""
        @workflow
        def good(event): pass
        @workflow
        def bad(event):
            raise KeyError("customer")
        """)
    await stage.start("inv.1")
    assert await stage.ended("inv.1") == "failed"
    runs = {run.workflow: run for run in await engine.runs() or []}
    assert (runs["good"].state, runs["bad"].state, runs["bad"].error) == ("completed", "failed", "'customer'")
    assert runs["bad"].delivery_key == "inv.1"


async def test_sleeping_runs_hold_up_nobody(stage: Stage) -> None:
    """More sleepers than there are threads, and one run that still gets through."""
    engine = await stage.open("""
        @workflow("sleepers")
        def sleeper(event):
            sleep(3600)
        @workflow("awake")
        def quick(event):
            mark("quick")
        """)
    await asyncio.gather(*(stage.start(f"s{number}.1", webhook_id="sleepers") for number in range(80)))
    await stage.start("q.1", webhook_id="awake")
    assert await stage.ended("q.1") == "completed"

    async def all_asleep() -> bool:
        return sum(run.state == "sleeping" for run in await engine.runs(100) or []) == 80

    await until(all_asleep)


@pytest.mark.parametrize("ahead_since", ["asleep_since", "started_at"])
async def test_a_sleep_that_began_before_the_clock_was_set_back_lasts_no_longer_for_that(
    stage: Stage, ahead_since: str
) -> None:
    """Whether it was ahead when the run began, or only when it fell asleep."""
    flow = """
        @step
        def before(): mark("before")
        @workflow
        def flow(event):
            before()
            sleep({})
            mark("after")
        """
    engine = await stage.open(flow.format(3600))
    await stage.start("inv.1")

    async def asleep() -> bool:
        return [run.state for run in await engine.runs() or []] == ["sleeping"]

    await until(asleep)
    await engine.close()
    with closing(sqlite3.connect(stage.data / "engine.db")) as journal:
        for column in {"asleep_since", "wake_at", ahead_since}:
            journal.execute(f"UPDATE runs SET {column} = {column} + 86400")
        journal.execute("UPDATE steps SET result = result + 86400 WHERE name = 'sleep'")
        journal.commit()
    await stage.open(flow.format(0.3))
    assert await stage.ended("inv.1") == "completed"
    assert (stage.marked("before"), stage.marked("after")) == (["x"], ["x"])


async def test_forgetting_a_delivery_leaves_nothing_of_it_even_while_it_runs(stage: Stage) -> None:
    engine = await stage.open("""
        @step
        def wait_for_it():
            mark("in")
            while not marked("go"):
                time.sleep(0.02)
        @workflow
        def flow(event):
            if event["fieldOne"]:
                wait_for_it()
            mark("through")
        """)
    await stage.start("done.1")
    await stage.ended("done.1")
    await stage.start("going.1", fieldOne="top-secret-value")
    await until(lambda: stage.marked("in"))
    await engine.forget(["done.1", "going.1", "never.1"])
    stage.mark("go")
    assert await engine.runs() == []
    await stage.start("last.1")
    assert await stage.ended("last.1") == "completed"
    assert [run.delivery_key for run in await engine.runs() or []] == ["last.1"]
    assert stage.marked("through") == ["x"] * 2, "of the one before and the one after"


@pytest.mark.parametrize("last_end", ["a minute", "a week"])
async def test_old_runs_are_pruned_when_it_is_opened_unless_the_clock_may_be_wrong(
    stage: Stage, last_end: str
) -> None:
    source = """
        from postern.core import steady_clock
        from postern.engines.embedded import housekeeping
        steady_clock.CONFIRMED = 0.0 if marked("confirmed") else 3600.0
        housekeeping.PRUNED_AT_ONCE = 1
        @workflow
        def flow(event): mark("done")
        """
    engine = await stage.open(source)
    for key in ("old.1", "old.2", "last.1"):
        await stage.start(key)
        await stage.ended(key)
    await engine.close()
    back = {"a minute": 60, "a week": 7 * 86400}[last_end]
    with closing(sqlite3.connect(stage.data / "engine.db")) as journal:
        journal.execute("UPDATE runs SET ended_at = ended_at - 30 * 86400 WHERE delivery LIKE 'old%'")
        journal.execute("UPDATE runs SET ended_at = ended_at - ? WHERE delivery = 'last.1'", (back,))
        journal.commit()

    async def keys() -> list[str]:
        return [run.delivery_key for run in await engine.runs() or []]

    engine = await stage.open(source, keep_runs_days=20)
    await stage.up()
    if last_end == "a week":
        await stage.start("another.1")
        await stage.ended("another.1")
        assert len(await keys()) == 4
        stage.mark("confirmed")
        await engine.close()
        engine = await stage.open(source, keep_runs_days=20)
        await stage.up()

    async def pruned() -> bool:
        return not [key for key in await keys() if key.startswith("old")]

    await until(pruned)


async def test_runs_that_are_kept_for_a_short_time_are_pruned_while_it_is_open(stage: Stage) -> None:
    engine = await stage.open("@workflow\ndef flow(event): mark('done')", keep_runs_days=1 / 86_400)
    await stage.start("one.1")
    await stage.ended("one.1")

    async def pruned() -> bool:
        return not await engine.runs()

    await until(pruned)


async def test_a_payload_beyond_what_a_frame_holds_is_rejected(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stage.open("""
        @workflow
        def flow(event): pass
        """)
    await stage.up()
    monkeypatch.setattr("postern.engines.embedded.frames.LARGEST", 100_000)
    with pytest.raises(EngineRejected):
        await stage.engine.start(Trigger("inv.1", "wh_1", "inv", {}, b'{"a":"' + b"x" * 100_000 + b'"}'))
