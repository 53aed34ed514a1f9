"""The response action's door: what a workflow may not say is refused by the name of the part that is
wrong."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from postern.core.history.invocation import Delivery
from postern.usecases.calls import waiting
from postern.usecases.calls.respond import report_end
from postern.usecases.runtime.process import CallerWait
from support.clock import HeldClock
from support.house import House
from support.refusals import fields_refused
from support.waiting import PATIENCE


async def test_an_answer_that_cannot_be_sent_is_refused_by_the_field_that_is_wrong(house: House) -> None:
    slow = await house.webhook(synchronousResponse={"enabled": True})
    house.lets_callers_wait(slow)
    await house.call(slow)
    (trigger,) = house.engine.started.values()
    names = ("X-Content-Type-Options", "x-accel-redirect", "X-Sendfile", "X-LiteSpeed-Location", "Set-Cookie")
    kinds = ("", "x", "*/*", "text/html, a/b", 'a/b; c="d, text/html"', "text/plain text/html", "a/b;")
    for wrong in (
        {"status": 99},
        *({"headers": {name: "a"}} for name in names),
        *({"headers": {"Content-Type": kind}} for kind in kinds),
        {"headers": {"X-Kind": "a\nb"}},
        {"headers": ["X-Kind"]},
        {"body": "x" * (1024 * 1024 + 1)},
    ):
        said: Any = wrong
        assert list(await fields_refused(house.answer(trigger, **said))) == list(wrong), wrong


async def test_a_caller_who_waits_looks_at_the_row_now_and_then_and_no_longer_than_allowed(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the engine cannot be asked how the run ends, and nothing is due to be looked at."""
    house.engine.down = True
    house.gateway.runtime.waiters.look_every = 10 * PATIENCE
    looks, get = [], house.gateway.store.deliveries.get

    async def counted(key: str) -> object:
        looks.append(key)
        return await get(key)

    monkeypatch.setattr(house.gateway.store.deliveries, "get", counted)
    webhook = await house.webhook(synchronousResponse={"enabled": True, "timeoutSeconds": 1})
    waits, now = [], 0.0
    within = CallerWait.within

    async def second_by_second(woken: CallerWait, seconds: float) -> None:
        nonlocal now
        waits.append(seconds)
        if looks:  # nobody wakes it any more
            now += seconds
        else:
            await within(woken, PATIENCE)

    monkeypatch.setattr(CallerWait, "within", second_by_second)
    monkeypatch.setattr(waiting, "time", SimpleNamespace(monotonic=lambda: now))
    async with asyncio.timeout(PATIENCE):
        early = await house.call(webhook)
    assert early.status == 504 and "or is started later" in early.json["detail"]  # nothing runs yet
    assert len(looks) == 1, "when the start had failed; when the time is over, the end is written at once"
    assert min(waits) > 0 and max(waits) <= 1, "as long as the webhook says"


async def test_a_workflow_says_its_status_or_200_is_meant(house: House) -> None:
    webhook = await house.webhook(synchronousResponse={"enabled": True})
    for answered, heard in ((201, 201), (None, 200)):
        house.engine.started.clear()
        waiting = asyncio.create_task(house.call(webhook))
        await house.answer(await house.begun(), answered)
        assert (await waiting).status == heard


async def test_who_waits_hears_at_once_that_the_runs_have_ended(house: House) -> None:
    house.engine.asked_after = None  # it is told
    webhook = await house.webhook(synchronousResponse={"enabled": True})
    waiting = asyncio.create_task(house.call(webhook))
    woken: list[str] = []
    async with asyncio.timeout(PATIENCE):
        trigger = await house.begun()
        assert trigger.end is not None
        wake = house.gateway.runtime.waiters.wake
        house.gateway.runtime.waiters.wake = lambda key: (woken.append(key), wake(key))[1]  # type: ignore[method-assign]
        await report_end(house.gateway, trigger.invocation_id, trigger.end.token, "failed", "no stock")
        assert (await waiting).status == 502
    assert woken == [trigger.key]


async def test_a_clock_that_is_set_back_during_a_call_does_not_lengthen_the_wait(house: House) -> None:
    now = house.gateway.clock()
    call = Delivery("inv_1.1", "inv_1", "wh_1", 1, "started", 0, now, {}, now, deadline=now + 0.05)
    HeldClock(house.gateway, now - 3600)
    async with asyncio.timeout(PATIENCE):
        assert (await waiting.wait(house.gateway, call, None)).status == 504
