"""Who waits for a workflow's answer, and who may give it."""

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs

from postern.core.answer import WorkflowResponse
from postern.core.deliveries import delivery as core
from postern.core.deliveries.delivery import End, Started, Trigger
from postern.core.history.invocation import StoreUnavailable
from postern.core.problems import Refused
from postern.observe.metrics import Numbers
from postern.stores.history.endings import EndingsWritten
from postern.usecases.calls.respond import delivery_of_token, report_end, respond
from postern.usecases.deliveries import dispatch
from postern.usecases.history import history
from postern.usecases.history.endings import EndingsLoop
from postern.usecases.webhooks.views import Webhook
from support.house import OWNER, House
from support.reply import HttpReply
from support.waiting import PATIENCE


def counted() -> dict[str, float]:
    return {state: Numbers.runs_ended.labels(state)._value.get() for state in ("completed", "failed")}


def waiting_webhook(house: House, seconds: int = 20, **more: Any) -> Any:
    return house.webhook(synchronousResponse={"enabled": True, "timeoutSeconds": seconds}, **more)


async def begun(house: House, webhook: Webhook) -> tuple["asyncio.Task[HttpReply]", Trigger]:
    """A caller who waits, and what the engine was given for it."""
    house.engine.started.clear()
    calling = asyncio.create_task(house.call(webhook))
    trigger = await house.begun()
    return calling, trigger


async def answer(house: House, trigger: Trigger, status: int = 201) -> None:
    assert trigger.response is not None
    await respond(
        house.gateway, trigger.invocation_id, trigger.response.token, status=status, headers={}, body="x"
    )


async def test_the_first_answer_counts_and_every_later_one_hears_so(house: House) -> None:
    calling, trigger = await begun(house, await waiting_webhook(house))
    await answer(house, trigger, 201)
    assert (await calling).status == 201
    with pytest.raises(Refused) as refused:
        await answer(house, trigger, 202)
    assert refused.value.code == "gone"
    assert (await house.history())[0].http_status == 201
    assert len(house.gateway.runtime.waiters) == 0


async def test_a_token_is_good_for_its_own_delivery_alone(house: House) -> None:
    webhook = await house.webhook()
    one, other = [(await house.call(webhook)).json["invocationId"] for _ in range(2)]
    await house.deliver()
    await history.replay(house.gateway, OWNER, one)
    gateway = house.gateway
    token = gateway.site.response_token
    assert await delivery_of_token(gateway, one, token(f"{one}.1")) == f"{one}.1"
    assert await delivery_of_token(gateway, one, token(f"{one}.2")) == f"{one}.2"
    for invocation, given in ((other, token(f"{one}.1")), (one, token(f"{one}.3")), ("inv_none", token("x"))):
        with pytest.raises(Refused) as refused:
            await delivery_of_token(gateway, invocation, given)
        assert refused.value.code == "not_authenticated"


async def test_a_reason_is_kept_as_far_as_it_is_read_and_success_has_none(house: House) -> None:
    webhook = await house.webhook()
    errors = []
    for state, reason in (("failed", "x" * 3_000), ("completed", "all went well")):
        call = (await house.call(webhook)).json["invocationId"]
        await house.deliver()
        token = house.gateway.site.response_token(f"{call}.1")
        await report_end(house.gateway, call, token, state, reason)  # type: ignore[arg-type]
        errors.append((await history.show(house.gateway, OWNER, call)).error)
    assert errors == ["x" * 2_000, None]


async def test_an_end_that_comes_before_its_start_is_written_down_is_kept_until_then(house: House) -> None:
    call = (await house.call(await house.webhook())).json["invocationId"]
    gateway = house.gateway
    (delivery,) = await gateway.store.deliveries.claim(gateway.clock(), dispatch.LEASE, 1)
    before = counted()
    await report_end(gateway, call, gateway.site.response_token(delivery.key), "completed", "")
    assert counted() == before
    await gateway.store.deliveries.started(delivery, Started(1), gateway.clock())
    await EndingsLoop(gateway).write()
    assert (await history.show(gateway, OWNER, call)).status == "completed"
    assert counted()["completed"] - before["completed"] == 1


@pytest.mark.parametrize("on_its_way", [True, False])
async def test_the_first_of_two_reports_counts_where_the_start_is_written_down_between_them(
    house: House, monkeypatch: pytest.MonkeyPatch, on_its_way: bool
) -> None:
    """The first is on its way into the store, which has not heard of the start yet; or it has come back and waits."""
    call = (await house.call(await house.webhook())).json["invocationId"]
    gateway = house.gateway
    (delivery,) = await gateway.store.deliveries.claim(gateway.clock(), dispatch.LEASE, 1)
    token, before = gateway.site.response_token(delivery.key), counted()
    note, judged, go_on = gateway.store.endings.note, asyncio.Event(), asyncio.Event()

    async def slowly(*given: Any) -> EndingsWritten:
        found = await note(*given)
        judged.set()
        await go_on.wait()
        return found

    with monkeypatch.context() as patched:
        patched.setattr(gateway.store.endings, "note", slowly)
        first = asyncio.create_task(report_end(gateway, call, token, "failed", "no stock"))
        await judged.wait()
    if not on_its_way:
        go_on.set()
        await first
    await gateway.store.deliveries.started(delivery, Started(1), gateway.clock())
    await report_end(gateway, call, token, "completed", "")
    go_on.set()
    await first
    await EndingsLoop(gateway).write()
    story = await history.show(gateway, OWNER, call)
    assert (story.status, story.error) == ("failed", "no stock")
    assert {state: counted()[state] - before[state] for state in before} == {"completed": 0, "failed": 1}


async def test_an_end_without_an_answer_is_reported_to_who_waits_and_changes_no_answer(house: House) -> None:
    webhook = await waiting_webhook(house)
    heard = []
    for answered in (False, True):
        calling, trigger = await begun(house, webhook)
        assert trigger.end is not None
        if answered:
            await answer(house, trigger)
        await report_end(house.gateway, trigger.invocation_id, trigger.end.token, "completed", "")
        heard.append((await calling).status)
    assert heard == [200, 201]


async def test_who_waits_for_an_engine_that_is_away_is_left_to_the_loop_at_once(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(core.random, "uniform", lambda low, high: 0.0)
    house.engine.down = True
    webhook = await waiting_webhook(house)
    calling = asyncio.create_task(house.call(webhook))
    async with asyncio.timeout(PATIENCE):
        await house.gateway.runtime.due.wait()
        house.engine.down = False
        await house.deliver()
        (trigger,) = house.engine.started.values()
        await answer(house, trigger)
        assert (await calling).status == 201


@pytest.mark.parametrize("asked", ["start", "ended"])
async def test_a_defect_of_an_engine_is_reported_as_one_while_a_caller_waits(
    house: House, asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    defect = asyncio.Event()

    async def broken(_: object) -> None:
        defect.set()
        raise KeyError("planted")

    monkeypatch.setattr(house.engine, asked, broken)
    with capture_logs() as lines:
        calling = asyncio.create_task(house.call(await waiting_webhook(house)))
        async with asyncio.timeout(PATIENCE):
            await defect.wait()
            while not lines:
                await asyncio.sleep(0.001)
        house.gateway.runtime.waiters.send_away()
        heard = await calling
    assert [one["event"] for one in lines] == ["an engine raised an unexpected error"]
    assert (heard.status, heard.json["code"]) == (504, "response_timeout")


FAILED = End("failed", 1.0, "the engine answered 404: no order")


@pytest.mark.parametrize("told", ["failed", FAILED])
async def test_that_a_workflow_failed_is_written_down_where_nobody_asks_the_engine(
    house: House, told: str | End
) -> None:
    async def ended(key: str) -> str | End:
        return told

    house.engine.ended = ended  # type: ignore[assignment,method-assign]
    heard = await house.call(await waiting_webhook(house))
    assert (heard.status, heard.json["code"]) == (502, "workflow_failed")
    noticed = house.gateway.runtime.endings.take().ends
    assert list(noticed.values()) == ([told] if told is FAILED else [])


async def test_a_workflow_that_failed_at_once_is_not_said_to_have_never_begun(house: House) -> None:
    async def start(_: Trigger) -> Started:
        return Started(1, failed="the engine answered 500: no order")

    house.engine.start = start  # type: ignore[method-assign]
    heard = await house.call(await waiting_webhook(house))
    assert (heard.status, heard.json["code"]) == (502, "workflow_failed")
    await EndingsLoop(house.gateway).write()
    call = await history.show(house.gateway, OWNER, heard.json["invocationId"])
    (delivery,) = call.deliveries
    assert (delivery.run_state, delivery.runs) == ("failed", 1)
    assert delivery.error == "the engine answered 500: no order"


async def test_an_engine_may_bring_the_answer_itself(house: House) -> None:
    async def ended(key: str) -> WorkflowResponse:
        return WorkflowResponse(203, (), b"brought")

    house.engine.ended = ended  # type: ignore[method-assign]
    heard = await house.call(await waiting_webhook(house))
    assert (heard.status, heard.body) == (203, b"brought")


async def test_who_waits_while_the_store_goes_away_is_to_come_back(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    webhook = await waiting_webhook(house, duplicateProtection={"enabled": True})
    calling, _ = await begun(house, webhook)

    async def away(*_: object) -> None:
        raise StoreUnavailable("away")

    again = asyncio.create_task(house.call(webhook))
    async with asyncio.timeout(PATIENCE):
        while len(house.gateway.runtime.waiters) < 2:
            await asyncio.sleep(0.001)
    with monkeypatch.context() as patched:
        patched.setattr(house.gateway.store.deliveries, "get", away)
        house.gateway.runtime.waiters.wake_all()
        heard = [await calling, await again]
    assert [(one.status, one.json["code"]) for one in heard] == [(503, "temporarily_unavailable")] * 2
    assert len(house.gateway.runtime.waiters) == 0
