"""Who watches calls as they come in is told each once when it is new, and again whenever it has moved."""

import asyncio
from typing import Any

import pytest

from postern.core.access.accounts import Actor
from postern.core.problems import Refused
from postern.usecases.runtime import live_feed
from postern.usecases.runtime.live_feed import LiveFeed, Watcher
from support.house import OWNER, House
from support.waiting import PATIENCE, until


@pytest.fixture(autouse=True)
def without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_feed, "CHECK_CALLS_EVERY", 0.01)
    monkeypatch.setattr(live_feed, "GATHER", 0.0)


@pytest.fixture
def live(house: House) -> LiveFeed:
    return house.gateway.runtime.live


async def events(watcher: Watcher) -> list[tuple[str, str]]:
    """What has come in together, once there is something."""
    async with asyncio.timeout(PATIENCE):
        while not watcher.waiting:
            await watcher.news.wait()
            watcher.news.clear()
    found: list[tuple[str, str]] = [(one.name, one.invocation_id) for one in watcher.waiting.values()]
    watcher.waiting.clear()
    return found


async def a_look(live: LiveFeed) -> None:
    """Until the newest ones were looked at from beginning to end."""
    before, begun = live._history.page, 0

    async def counted(*given: Any) -> Any:
        nonlocal begun
        begun += 1
        return await before(*given)

    live._history.page = counted  # type: ignore[method-assign]
    await until(lambda: begun >= 2)
    live._history.page = before  # type: ignore[method-assign]


async def test_what_had_come_before_is_no_news_and_a_call_is_new_once(house: House, live: LiveFeed) -> None:
    webhook = await house.webhook()
    await house.recorded(webhook)
    await house.deliver()
    watcher = live.join(OWNER, None)
    await a_look(live)
    call = await house.recorded(webhook)
    assert await events(watcher) == [("invocation", call)]
    live.touch(call)  # nothing about it is another
    await a_look(live)
    assert not watcher.waiting
    await house.deliver()
    assert await events(watcher) == [("delivery", call)]
    live.leave(watcher)


@pytest.mark.parametrize("touched", [False, True])
async def test_a_call_that_was_under_way_when_somebody_came_is_news_only_where_it_is_recorded_after_that(
    house: House, live: LiveFeed, touched: bool
) -> None:
    webhook = await house.webhook()
    before = await house.recorded(webhook)
    watcher = live.join(OWNER, None)
    if touched:
        live.touch(before)
    else:
        await a_look(live)
    after = await house.recorded(webhook)
    found = await events(watcher)
    if touched and len(found) == 1:
        found += await events(watcher)
    assert found == [("invocation", before)] * touched + [("invocation", after)]
    live.leave(watcher)


async def test_what_other_processes_did_is_found_among_the_newest_the_oldest_first(house: House) -> None:
    webhook, other = await house.webhook(), await house.webhook()
    calls = [await house.recorded(each, b'{"n":%d}' % n) for n, each in enumerate((webhook, other, webhook))]
    live = LiveFeed(house.gateway.store.history, lambda: 0.0)  # as if it had been here before them
    both, one = live.join(OWNER, None), live.join(OWNER, webhook.id)
    assert await events(both) == [("invocation", call) for call in calls]
    assert await events(one) == [("invocation", calls[0]), ("invocation", calls[2])]
    for watcher in (both, one):
        live.leave(watcher)


async def test_what_another_process_moved_is_told_though_its_call_came_before_anybody_watched(
    house: House,
) -> None:
    call = await house.recorded(await house.webhook())
    live = LiveFeed(house.gateway.store.history, house.gateway.clock)  # nobody here touches it
    watcher = live.join(OWNER, None)
    await a_look(live)
    await house.deliver()
    assert await events(watcher) == [("delivery", call)]
    live.leave(watcher)


async def test_what_it_remembers_of_calls_is_bounded_and_what_moved_last_is_kept(
    house: House, live: LiveFeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_feed, "REMEMBERED", 2)
    webhook = await house.webhook()
    for number in range(3):
        await house.recorded(webhook, b'{"n":%d}' % number)
    newest, middle, oldest = await house.history()
    for summary in (oldest, middle, oldest, newest):
        live._remember(summary)
    assert list(live._known) == [oldest.id, newest.id]


def come(live: LiveFeed, *actors: Actor) -> list[str]:
    came = []
    for actor in actors:
        try:
            live.join(actor, None)
            came.append("came")
        except Refused as refused:
            assert (refused.code, refused.retry_after) == ("rate_limited", 10)
            came.append("refused")
    return came


async def test_one_user_opens_twenty_and_all_together_two_hundred(live: LiveFeed) -> None:
    ada, renamed = Actor("ada", "read", "usr_1"), Actor("lovelace", "read", "usr_1")
    cli, other = Actor("command line", "admin"), Actor("another", "admin")
    assert come(live, *[ada] * 19, renamed, ada, renamed) == ["came"] * 20 + ["refused"] * 2
    assert come(live, *[cli] * 21) == ["came"] * 20 + ["refused"]
    for number in range(8):
        assert come(live, *[Actor("somebody", "read", f"usr_of_{number}")] * 20) == ["came"] * 20
    assert come(live, other) == ["refused"]
    for watcher in list(live._watchers):
        live.leave(watcher)
