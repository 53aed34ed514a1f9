"""What a loop of a serving process promises to whoever ends it."""

import asyncio

import pytest
from structlog.testing import capture_logs

from postern.core.history.invocation import StoreUnavailable
from postern.usecases.runtime import loop as module
from postern.usecases.runtime.loop import Loop


async def nothing() -> None: ...


@pytest.mark.parametrize("steps", range(12))
async def test_a_loop_that_is_cut_off_ends_wherever_it_is(steps: int) -> None:
    loop = Loop("test", nothing, 0.0, lambda: asyncio.sleep(0))
    running = asyncio.create_task(loop.run())
    for _ in range(steps):
        await asyncio.sleep(0)
    running.cancel()
    try:
        done, _ = await asyncio.wait([running], timeout=5)
        assert running in done
    finally:
        loop.stop()
        await asyncio.wait([running])


async def test_a_round_that_fails_is_not_the_last_one() -> None:
    rounds = 0

    async def work() -> bool:
        nonlocal rounds
        rounds += 1
        if rounds == 1:
            raise ValueError("planted")
        loop.stop()
        return True

    loop = Loop("test", work, 0.0)
    loop.rest = lambda *_: nothing()  # type: ignore[method-assign,assignment]
    await asyncio.wait_for(loop.run(), 5)
    assert rounds == 2


async def test_no_pause_follows_a_round_that_left_something_and_one_every_other() -> None:
    done: list[str] = []
    left = [True, True, False, True]

    async def work() -> bool:
        done.append("round")
        if len(left) == 1:
            loop.stop()
        return left.pop(0)

    async def news() -> None:
        done.append("pause")

    loop = Loop("test", work, 3600.0, news)
    await asyncio.wait_for(loop.run(), 5)
    assert done == ["round", "round", "round", "pause", "round"]
    assert loop.stopping


async def test_what_no_round_would_come_upon_is_looked_for_first_and_then_once_a_minute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, done = 1000.0, []
    monkeypatch.setattr(module.time, "monotonic", lambda: now)

    async def catch_up() -> None:
        done.append(now)

    async def work() -> bool:
        nonlocal now
        assert done, "it comes before the first round"
        now += 20.0
        if now > 1130.0:
            loop.stop()
        return True

    loop = Loop("test", work, 0.0, catch_up=catch_up)
    await asyncio.wait_for(loop.run(), 5)
    assert done == [1000.0, 1060.0, 1120.0]


async def test_that_the_store_is_away_is_said_once_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0

    async def work() -> bool:
        raise StoreUnavailable("full")

    async def rest(seconds: float, *until: object) -> None:
        nonlocal now
        now += 20.0
        if now > 1100.0:
            loop.stop()

    monkeypatch.setattr(module.time, "monotonic", lambda: now)
    loop = Loop("deliveries", work, 0.0)
    loop.rest = rest  # type: ignore[method-assign,assignment]
    with capture_logs() as lines:
        await asyncio.wait_for(loop.run(), 5)
    # At 1000 and at 1060, not at each of six rounds.
    assert [one["error"] for one in lines] == ["full", "full"]


async def test_a_rest_ends_when_there_is_news_or_when_the_loop_is_to_stop() -> None:
    loop, news = Loop("test", nothing, 0.0), asyncio.Event()
    for wakes in (news.set, loop.stop):
        news.clear()
        resting = asyncio.create_task(loop.rest(3600.0, news.wait()))
        await asyncio.sleep(0)
        assert not resting.done()
        wakes()
        await asyncio.wait_for(resting, 5)
    await asyncio.wait_for(loop.rest(3600.0), 5)  # it is to stop already
