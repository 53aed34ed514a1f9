"""A stream of events, told once each: how long it goes on, what it tells of what was missed, and who hears it."""

import asyncio
from contextlib import aclosing
from typing import Any

import pytest

from postern.core.access.accounts import Actor
from postern.core.problems import Refused
from postern.identity import time_of
from postern.usecases.history import live
from postern.usecases.history.live import Stream, follow, watch
from postern.usecases.runtime import live_feed
from postern.usecases.runtime.live_feed import LiveEvent
from support.house import OWNER, House
from support.waiting import PATIENCE


class Asked:
    """Says who is asking, and how often it was asked."""

    def __init__(self) -> None:
        self.times = 0
        self.may = True

    async def __call__(self) -> Actor:
        self.times += 1
        if not self.may:
            raise Refused("not_authenticated", "signed out")
        return OWNER


def as_long_ago(stream: Stream) -> None:
    """As if it had last been asked for so long ago that it is asked again."""
    stream._checked -= live.CHECK_EVERY


async def some(stream: Stream, count: int) -> list[str]:
    found: list[str] = []
    async with asyncio.timeout(PATIENCE), aclosing(stream.events()) as events:
        async for event in events:
            if event is not None:
                found.append(event.invocation_id)
            if len(found) == count:
                break
    return found


async def test_where_nothing_happens_a_stream_says_so_now_and_then_and_goes_on(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "HEARTBEAT", 0.001)
    stream, webhook = await follow(house.gateway, OWNER, Asked()), await house.webhook()
    async with asyncio.timeout(PATIENCE), aclosing(stream.events()) as events:
        assert [await anext(events) for _ in range(3)] == [None, None, None]
        call = await house.recorded(webhook)
        async for event in events:
            if event is not None:
                break
    assert event is not None and event.invocation_id == call
    stream.close()


async def test_who_follows_one_webhook_hears_of_its_calls_alone(house: House) -> None:
    one, other = await house.webhook(), await house.webhook()
    stream = await follow(house.gateway, OWNER, Asked(), one.id)
    await house.call(other)
    call = await house.recorded(one)
    assert await some(stream, 1) == [call]
    stream.close()


async def test_whoever_follows_is_asked_for_now_and_then_and_sent_away_once_they_may_not(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "HEARTBEAT", 0.0)
    monkeypatch.setattr(live, "CHECK_EVERY", 3600.0)  # however slow this machine is
    asked = Asked()
    following, watching = [await way(house.gateway, OWNER, asked) for way in (follow, watch)]
    async with aclosing(following.events()) as events, aclosing(watching.batches(0.0)) as batches:
        for stream, events_of_it in ((following, events), (watching, batches)):
            asked.times = 0
            await anext(events_of_it)
            assert asked.times == 0, "who has just come was asked for"
            as_long_ago(stream)
            for _ in range(2):
                await anext(events_of_it)
            assert asked.times == 1
        asked.may = False
        for stream, events_of_it in ((following, events), (watching, batches)):
            as_long_ago(stream)
            with pytest.raises(StopAsyncIteration):
                await anext(events_of_it)
    for stream in (following, watching):
        stream.close()
    assert not house.gateway.runtime.live._watchers


async def test_when_the_server_ends_every_stream_does(house: House) -> None:
    following, watching = [await way(house.gateway, OWNER, Asked()) for way in (follow, watch)]
    house.gateway.runtime.live.close()
    async with asyncio.timeout(PATIENCE):
        assert [event async for event in following.events()] == []
        assert [batch async for batch in watching.batches(3600.0)] == []


async def test_who_comes_back_hears_what_came_shortly_before_too(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Calls that arrive together may be recorded in another order."""
    webhook = await house.webhook()
    call = await house.recorded(webhook)
    since: list[float | None] = []
    page = house.gateway.store.history.page

    async def noted(wanted: Any, *given: Any) -> Any:
        since.append(wanted.since)
        return await page(wanted, *given)

    monkeypatch.setattr(house.gateway.store.history, "page", noted)
    stream = await follow(house.gateway, OWNER, Asked(), webhook.id, call)
    assert await some(stream, 1) == [call]
    assert time_of(call) - live.OVERLAP in since
    stream.close()
    old = await follow(house.gateway, OWNER, Asked(), webhook.id, "inv_" + "0" * 32)
    assert await some(old, 1) == [call]
    assert 0.0 in since, "there is no time before 1970"
    old.close()


async def test_of_very_much_that_was_missed_the_newest_part_is_reported(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "RESUMED", 3)
    webhook = await house.webhook()
    calls = [await house.recorded(webhook) for _ in range(6)]
    page = house.gateway.store.history.page

    async def short(wanted: Any, limit: int, before: str | None = None) -> Any:
        return await page(wanted, 2, before)

    monkeypatch.setattr(house.gateway.store.history, "page", short)
    stream = await follow(house.gateway, OWNER, Asked(), webhook.id, calls[0])
    missed = [event.invocation_id for event in await stream._missed(calls[0])]
    assert missed == calls[2:]
    assert stream._after == calls[-1], "from there it would go on"
    stream.close()


async def test_who_was_too_slow_hears_from_where_they_were_and_then_what_is_new(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    webhook = await house.webhook()
    stream = await follow(house.gateway, OWNER, Asked(), webhook.id)
    stream.close()  # nobody but this test tells it anything
    calls = [await house.recorded(webhook) for _ in range(3)]
    summaries = {one.id: one for one in await house.history()}
    monkeypatch.setattr(live_feed, "LONGEST_QUEUE", 1)
    for call in calls[:2]:
        stream._watcher.add(LiveEvent("invocation", summaries[call]))
    assert stream._watcher.lost
    found = await some(stream, 3)
    assert (found, stream._watcher.lost) == (calls, False)


async def test_who_looks_on_too_slowly_gets_the_newest_and_hears_how_many_were_left_out(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    webhook = await house.webhook()
    calls = [await house.recorded(webhook) for _ in range(5)]
    monkeypatch.setattr(live_feed, "LONGEST_QUEUE", 2)
    stream = await watch(house.gateway, OWNER, Asked(), webhook.id)
    for summary in reversed(await house.history()):
        stream._watcher.add(LiveEvent("invocation", summary))
    assert len(stream._watcher.waiting) == 2
    async with aclosing(stream.batches(PATIENCE)) as batches:
        batch = await anext(batches)
        assert ([event.invocation_id for event in batch.events], batch.skipped) == (calls[3:], 3)
    stream.close()
