"""Background work does not end unseen."""

import asyncio

from structlog.testing import capture_logs

from postern.wiring.serving import Service


async def follows_nothing() -> None:
    raise LookupError("planted")


async def ends() -> None:
    await asyncio.sleep(0)


async def never_ends() -> None:
    await asyncio.Event().wait()


async def test_an_end_by_an_error_is_in_the_log_at_once_and_no_other_end_is() -> None:
    with capture_logs() as lines:
        tasks = [Service(one).begin() for one in (ends, follows_nothing, never_ends)]
        tasks[2].cancel()
        await asyncio.wait(tasks)
        await asyncio.sleep(0)
    [line] = lines
    assert line["event"] == "a background task has ended"
    assert "follows_nothing" in line["task"]
    assert isinstance(line["exc_info"], LookupError)
