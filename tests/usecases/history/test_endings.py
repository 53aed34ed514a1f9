"""Ends that were heard of and are on their way to where they are written down."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from postern.core.deliveries.delivery import End, EngineUnavailable, Started
from postern.core.history.invocation import AnswerHeard, StoreUnavailable
from postern.observe.metrics import Numbers
from postern.usecases.history import endings as endings_module
from postern.usecases.history import history
from postern.usecases.history.endings import EndingsLoop
from support.clock import HeldClock
from support.desk import ACTOR, Desk, on_both
from support.house import NotingEngine
from support.waiting import PATIENCE, until


async def test_an_end_that_a_defect_kept_from_the_store_stands_in_the_way_of_no_other(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    endings, loop = desk.gateway.runtime.endings, EndingsLoop(desk.gateway)

    async def broken(*given: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(desk.store.endings, "note", broken)
    endings.ended("inv_1.1", End("completed", 1.0))
    with pytest.raises(RuntimeError):
        await loop.write()
    later = End("failed", 2.0, "no stock")
    with endings.reported("inv_1.1", later) as end:
        assert end is later


async def test_an_end_whose_start_is_not_written_down_is_looked_at_again_without_hurry(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A start may be tried for days, and each look is a commit: news would make one follow another at once."""
    invocation = await desk.accepted(await desk.webhook(), {})
    (delivery,) = await desk.store.deliveries.claim(desk.gateway.clock(), 60.0, 1)
    endings, loop = desk.gateway.runtime.endings, EndingsLoop(desk.gateway)
    looks = 0
    note = desk.store.endings.note

    async def counted(*given: object) -> set[str]:
        nonlocal looks
        looks += 1
        found: set[str] = await note(*given)
        return found

    monkeypatch.setattr(desk.store.endings, "note", counted)
    endings.ended(delivery.key, End("completed", desk.gateway.clock()))
    assert endings.news.is_set()
    for round in (1, 2):
        await loop.write()
        # Nothing wakes the loop before its second is over.
        assert (looks, endings.news.is_set()) == (round, False)
    await desk.store.deliveries.started(delivery, Started(1, ("flow",)), desk.gateway.clock())
    await loop.write()
    assert (await history.show(desk.gateway, ACTOR, invocation)).status == "completed"
    await loop.write()
    assert looks == 3


class Asked(NotingEngine):
    """An engine that tells how runs ended, as the test wants it."""

    asked_after = 5.0

    def __init__(self) -> None:
        super().__init__()
        self.ends_of: dict[str, End | None] = {}

    async def ends(self, keys: list[str]) -> dict[str, End | None]:
        if self.down:
            raise EngineUnavailable("away")
        return {key: end for key, end in self.ends_of.items() if key in keys}


@on_both
async def test_an_engine_that_can_tell_is_asked_until_it_has_answered(desk: Desk) -> None:
    engine, loop = Asked(), EndingsLoop(desk.gateway)
    clock = HeldClock(desk.gateway)
    began = clock.now
    keys = [f"{call}.1" for call in await desk.numbered(await desk.webhook(), 4)]
    assert not await loop.ask()  # nobody to ask
    desk.gateway.engine = engine
    for delivery in await desk.store.deliveries.claim(began + 1, 60.0, 4):
        await desk.store.deliveries.started(delivery, Started(1, ("flow",)), began, began + 5)
    done, failed, at_work, lost = keys
    engine.ends_of = {done: End("completed", began), failed: End("failed", began, "no order"), at_work: None}

    async def states(after: float) -> list[tuple[str | None, float | None]]:
        """Of each run, and in how many seconds it is asked about again."""
        clock.now = began + after
        before = {kind: Numbers.runs_ended.labels(kind)._value.get() for kind in ("completed", "failed")}
        await loop.ask()
        await loop.write()
        counted.update({kind: Numbers.runs_ended.labels(kind)._value.get() - before[kind] for kind in before})
        found = [await desk.store.deliveries.get(key) for key in keys]
        return [(one.state, one.ask_at and round(one.ask_at - began - after)) for one in found]

    counted: Counter[str] = Counter()
    assert await states(1.0) == [("started", 4)] * 4  # not yet
    engine.down = True
    assert await states(6.0) == [("started", 5)] * 4  # it is asked again
    engine.down = False
    assert await states(12.0) == [("completed", None), ("failed", None), ("started", 5), ("started", 5)]
    assert counted == {"completed": 1, "failed": 1}
    # The longer it has lasted, the less often; and every two minutes at least. What the engine does not know once that
    # cannot be because it was started just now is lost.
    assert (await states(1_000.0))[2:] == [("started", 120), ("lost", 600)]
    engine.down = True
    assert (await states(1_700.0))[2:] == [("started", 5), ("lost", 5)]
    engine.down = False
    assert (await states(1_710.0))[2:] == [("started", 120), ("lost", 600)]
    engine.ends_of[at_work], engine.ends_of[lost] = End("completed", began + 1_300), None
    assert (await states(2_400.0))[2:] == [("completed", None), ("started", 120)]
    desk.gateway.engine = None


async def test_it_asks_once_a_second_unless_there_are_more_and_writes_down_meanwhile(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, now, done = EndingsLoop(desk.gateway), 1000.0, []
    more = False

    async def ask() -> bool:
        done.append("asked")
        return more

    async def write() -> None:
        done.append("wrote")

    monkeypatch.setattr(loop, "ask", ask)
    monkeypatch.setattr(loop, "write", write)
    monkeypatch.setattr(endings_module.time, "monotonic", lambda: now)

    async def rounds(*later: float) -> list[str]:
        nonlocal now
        done.clear()
        for seconds in later:
            now += seconds
            assert await loop._work() is (more and done[-1] == "asked")
        return list(done)

    assert await rounds(0.0, 0.9) == ["wrote", "asked", "wrote"]
    assert await rounds(0.1) == ["wrote", "asked"]
    now += 1.0
    more = True
    assert await rounds(0.0, 0.0) == ["wrote", "asked", "wrote", "asked"]


async def test_what_could_not_be_written_down_is_kept_and_what_was_is_reported_to_those_who_watch(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    invocation = await desk.accepted(await desk.webhook(), {})
    (delivery,) = await desk.store.deliveries.claim(desk.gateway.clock(), 60.0, 1)
    await desk.store.deliveries.started(delivery, Started(1, ("flow",)), desk.gateway.clock())
    endings, loop, touched = desk.gateway.runtime.endings, EndingsLoop(desk.gateway), []
    endings.take()
    endings.ended(delivery.key, End("completed", desk.gateway.clock()))
    endings.answered(AnswerHeard(invocation, 200, desk.gateway.clock(), True))
    monkeypatch.setattr(desk.gateway.runtime.live, "touch", touched.append)

    async def away(*given: Any) -> set[str]:
        raise StoreUnavailable("away")

    with monkeypatch.context() as patched:
        patched.setattr(desk.store.endings, "note", away)
        with pytest.raises(StoreUnavailable):
            await loop.write()
    assert touched == []
    await loop.write()
    assert touched == [invocation, invocation]
    assert (await history.show(desk.gateway, ACTOR, invocation)).answered_at is not None
    await loop.write()
    assert touched == [invocation, invocation]


async def test_the_loop_wakes_for_news_and_stops_when_it_is_asked(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endings_module, "CHECK_ENDS_EVERY", 3600.0)
    monkeypatch.setattr(endings_module, "GATHER", 0.0)
    loop, endings = EndingsLoop(desk.gateway), desk.gateway.runtime.endings
    running = asyncio.create_task(loop.run())
    endings.ended("inv_none.1", End("completed", 1.0))
    await until(lambda: not (endings.news.is_set() or endings._noticed))
    loop.stop()
    await asyncio.wait_for(running, PATIENCE)
