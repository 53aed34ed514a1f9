"""Following calls as they come, with what was missed in between, told once each."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest

from postern.core.access.accounts import Actor
from postern.usecases.history.live import follow, watch
from postern.usecases.runtime import live_feed
from postern.usecases.runtime.live_feed import LiveEvent
from support.house import OWNER, House
from support.waiting import PATIENCE


async def still() -> Actor:
    return OWNER


async def next_call(events: AsyncIterator[LiveEvent | None]) -> str:
    async with asyncio.timeout(PATIENCE):
        async for event in events:
            if event is not None:
                return event.invocation_id
    raise AssertionError("the stream has ended")


async def test_who_follows_one_webhook_hears_of_its_calls_alone(house: House) -> None:
    one, other = await house.webhook(), await house.webhook()
    stream = await follow(house.gateway, OWNER, still, one.id)
    async with aclosing(stream.events()) as events:
        await house.call(other)
        call = (await house.call(one)).json["invocationId"]
        assert await next_call(events) == call
    stream.close()


async def test_who_looks_on_too_slowly_gets_the_newest_and_hears_how_many_were_left_out(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    webhook = await house.webhook()
    calls = [(await house.call(webhook, b'{"n":%d}' % number)).json["invocationId"] for number in range(5)]
    summaries = {one.id: one for one in await house.history()}
    monkeypatch.setattr(live_feed, "LONGEST_QUEUE", 2)
    stream = await watch(house.gateway, OWNER, still, webhook.id)
    (watcher,) = house.gateway.runtime.live._watchers
    for call in calls:
        watcher.add(LiveEvent("invocation", summaries[call]))
    assert len(watcher.waiting) == 2
    async with aclosing(stream.batches(PATIENCE)) as batches:
        batch = await anext(batches)
        assert ([event.invocation_id for event in batch.events], batch.skipped) == (calls[3:], 3)
    stream.close()
