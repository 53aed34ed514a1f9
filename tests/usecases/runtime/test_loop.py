"""What a loop of a serving process promises to whoever ends it."""

import asyncio

import pytest

from postern.usecases.runtime.loop import Loop

pytestmark = pytest.mark.anyio


async def nothing() -> None: ...


@pytest.mark.parametrize("steps", range(12))
async def test_a_loop_that_is_cut_off_ends_wherever_it_is(steps: int) -> None:
    loop = Loop("test", nothing, lambda: loop.rest(0, asyncio.sleep(0)))
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

    loop = Loop("test", work, nothing)
    loop.rest = lambda *_: nothing()  # type: ignore[method-assign,assignment]
    await asyncio.wait_for(loop.run(), 5)
    assert rounds == 2
