"""Who waits for a workflow's answer, and who may give it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from postern.core.deliveries import delivery as core
from postern.core.deliveries.delivery import End, Started, Trigger
from postern.core.history.invocation import Delivery, StoreUnavailable
from postern.observe.metrics import Numbers
from postern.stores.history.endings import EndingsWritten
from postern.usecases.calls.respond import delivery_of_token, report_end
from postern.usecases.deliveries import dispatch, holds
from postern.usecases.history import history
from postern.usecases.history.endings import EndingsLoop
from postern.usecases.runtime import process
from postern.usecases.webhooks import webhooks
from postern.usecases.webhooks.views import Webhook
from support.house import OWNER, House, a_house
from support.refusals import refused
from support.reply import HttpReply
from support.waiting import PATIENCE, until


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


async def test_the_first_answer_counts_and_every_later_one_hears_so(house: House) -> None:
    calling, trigger = await begun(house, await waiting_webhook(house))
    await house.answer(trigger, 201)
    assert (await calling).status == 201
    assert (await refused(house.answer(trigger, 202))).code == "gone"
    assert (await house.history())[0].http_status == 201
    assert len(house.gateway.runtime.waiters) == 0


async def test_a_token_is_good_for_its_own_delivery_alone(house: House) -> None:
    webhook = await house.webhook()
    one, other = [await house.recorded(webhook) for _ in range(2)]
    await house.deliver()
    await history.replay(house.gateway, OWNER, one)
    gateway = house.gateway
    token = gateway.site.response_token
    assert await delivery_of_token(gateway, one, token(f"{one}.1")) == f"{one}.1"
    assert await delivery_of_token(gateway, one, token(f"{one}.2")) == f"{one}.2"
    for invocation, given in ((other, token(f"{one}.1")), (one, token(f"{one}.3")), ("inv_none", token("x"))):
        assert (await refused(delivery_of_token(gateway, invocation, given))).code == "not_authenticated"


async def test_a_reason_is_kept_as_far_as_it_is_read_and_success_has_none(house: House) -> None:
    webhook = await house.webhook()
    errors = []
    for state, reason in (("failed", "x" * 3_000), ("completed", "all went well")):
        call = await house.recorded(webhook)
        await house.deliver()
        token = house.gateway.site.response_token(f"{call}.1")
        await report_end(house.gateway, call, token, state, reason)  # type: ignore[arg-type]
        errors.append((await history.show(house.gateway, OWNER, call)).error)
    assert errors == ["x" * 2_000, None]


async def claimed(house: House) -> tuple[str, Delivery]:
    """A call whose start is under way."""
    call = await house.recorded(await house.webhook())
    (delivery,) = await house.gateway.store.deliveries.claim(house.gateway.clock(), dispatch.LEASE, 1)
    return call, delivery


async def test_an_end_that_comes_before_its_start_is_written_down_is_kept_until_then(house: House) -> None:
    (call, delivery), gateway, before = await claimed(house), house.gateway, counted()
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
    (call, delivery), gateway = await claimed(house), house.gateway
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
            await house.answer(trigger)
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
        await house.gateway.runtime.engine.due.wait()
        house.engine.down = False
        await house.deliver()
        (trigger,) = house.engine.started.values()
        await house.answer(trigger)
        assert (await calling).status == 201


@pytest.mark.parametrize("asked", ["start", "ended"])
async def test_a_defect_of_an_engine_is_reported_as_one_while_a_caller_waits(
    house: House, asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(_: object) -> None:
        raise KeyError("planted")

    monkeypatch.setattr(house.engine, asked, broken)
    with capture_logs() as lines:
        calling = asyncio.create_task(house.call(await waiting_webhook(house)))
        await until(lambda: lines)
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


async def test_who_waits_while_the_store_goes_away_is_to_come_back(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    webhook = await waiting_webhook(house, duplicateProtection={"enabled": True})
    calling, _ = await begun(house, webhook)

    async def away(*_: object) -> None:
        raise StoreUnavailable("away")

    again = asyncio.create_task(house.call(webhook))
    await until_two_wait(house)
    with monkeypatch.context() as patched:
        patched.setattr(house.gateway.store.deliveries, "get", away)
        house.gateway.runtime.waiters.wake_all()
        heard = [await calling, await again]
    assert [(one.status, one.json["code"]) for one in heard] == [(503, "temporarily_unavailable")] * 2
    assert len(house.gateway.runtime.waiters) == 0


# --- duplicates of a call that waits, and other gateways ------------------------------------------------------------


PROTECTED = {"duplicateProtection": {"enabled": True}}


async def until_two_wait(house: House) -> None:
    await until(lambda: len(house.gateway.runtime.waiters) >= 2)


async def test_a_duplicate_hears_what_the_first_call_hears_while_it_waits_and_afterwards(
    house: House,
) -> None:
    webhook = await waiting_webhook(house, **PROTECTED)
    async with asyncio.timeout(PATIENCE):
        first, trigger = await begun(house, webhook)
        again = asyncio.create_task(house.call(webhook))
        await until_two_wait(house)
        assert not again.done()
        await house.answer(trigger)
        heard = [await first, await again, await house.call(webhook)]
    assert [(one.status, one.body) for one in heard] == [(201, b"x")] * 3
    assert sum(house.engine.times.values()) == 1


async def test_a_duplicate_waits_no_longer_than_its_webhook_now_says(house: House) -> None:
    webhook = await waiting_webhook(house, **PROTECTED)

    async def change(seconds: int) -> None:
        patch = {"synchronousResponse": {"timeoutSeconds": seconds}}
        await webhooks.change(house.gateway, OWNER, webhook.id, patch)

    async with asyncio.timeout(PATIENCE):
        first, _ = await begun(house, webhook)
        await change(1)
        now = house.gateway.runtime.directory.by_id(webhook.id)
        assert now is not None and now.answer_timeout == 1
        house.lets_callers_wait(webhook)
        house.gateway.runtime.waiters.look_every = 0.01
        again = await house.call(webhook)
        assert (again.status, again.json["code"], first.done()) == (504, "response_timeout", False)
        # When the gateway is told to stop, everybody hears how it stands.
        await change(25)
        another = asyncio.create_task(house.call(webhook))
        await until_two_wait(house)
        house.gateway.runtime.waiters.send_away()
        assert {(await first).status, (await another).status} == {504}


async def test_callers_of_a_webhook_on_hold_and_duplicates_of_such_a_call_are_answered_at_once(
    house: House,
) -> None:
    webhook = await waiting_webhook(house, **PROTECTED)
    await holds.hold(house.gateway, OWNER, webhook.id)
    async with asyncio.timeout(PATIENCE):
        first = await house.call(webhook)
        assert (first.status, first.json["status"]) == (200, "accepted")
        await holds.release(house.gateway, OWNER, webhook.id)
        again = await house.call(webhook)
    duplicate = {"status": "duplicate", "invocationId": first.json["invocationId"]}
    assert (again.status, again.json) == (200, duplicate)


async def test_a_caller_is_woken_by_an_answer_that_comes_in_at_another_gateway_and_need_not_look(
    tmp_path: Path, migrated_url: str
) -> None:
    shared = {"POSTERN_DATABASE_URL": migrated_url, "POSTERN_SECRET_KEYS": "a-key-of-both-long-enough"}
    async with a_house(tmp_path / "1", **shared) as here, a_house(tmp_path / "2", **shared) as there:
        waiters = here.gateway.runtime.waiters
        following = asyncio.create_task(here.gateway.store.listen(here.gateway.runtime.hear))
        async with asyncio.timeout(PATIENCE):
            await until(lambda: waiters.look_every == process.RARELY)
            webhook = await waiting_webhook(here)
            here.lets_callers_wait(webhook, 3600.0)
            waiters.look_every = 3600.0
            calling, trigger = await begun(here, webhook)
            await there.answer(trigger, body="from there")
            heard = await calling
        assert (heard.status, heard.body) == (201, b"from there")
        following.cancel()
