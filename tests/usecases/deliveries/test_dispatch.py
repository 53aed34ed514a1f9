"""The loop that starts what is due: a slow engine slows its own starts, a dead one is asked by one delivery
at a time."""

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import closing, contextmanager
from typing import Any

import psycopg
import pytest
from sqlalchemy import select

from postern.core.deliveries.delivery import Started, Trigger
from postern.stores.sql.tables import deliveries
from postern.usecases.deliveries import dispatch, starting
from postern.usecases.deliveries.dispatch import Dispatcher
from postern.usecases.runtime.gateway import Gateway
from postern.usecases.runtime.process import EngineAway
from support.clock import later
from support.desk import Desk, on_both
from support.house import NotingEngine
from support.waiting import PATIENCE, until


class SlowEngine(NotingEngine):
    """A start lasts until ``go`` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.go = asyncio.Event()
        self.enough = asyncio.Event()
        self.under_way = 0
        self.most = 0

    async def start(self, trigger: Trigger) -> Started:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        if self.most == 2:
            self.enough.set()
        await self.go.wait()
        self.under_way -= 1
        return await super().start(trigger)


@pytest.fixture
async def engine(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SlowEngine]:
    monkeypatch.setattr(dispatch, "LONGEST_BATCH", 0.01)
    desk.gateway.engine = engine = SlowEngine()
    yield engine
    desk.gateway.engine = None


async def states(desk: Desk) -> list[str]:
    return [row.state for row in await desk.rows(select(deliveries.c.state))]


def noted_rests(dispatcher: Dispatcher, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Its pauses, which are not made."""
    rests: list[float] = []

    async def rest(seconds: float, *until: Coroutine[Any, Any, Any]) -> None:
        rests.append(seconds)
        for one in until:
            one.close()

    monkeypatch.setattr(dispatcher._loop, "rest", rest)
    return rests


async def test_a_slow_start_does_not_hold_up_the_next_ones_and_only_so_many_are_under_way(
    desk: Desk, engine: SlowEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch, "BATCH", 1)
    monkeypatch.setattr(dispatch, "DELIVERIES_AT_ONCE", 2)
    await desk.numbered(await desk.webhook(), 5)
    dispatcher = Dispatcher(desk.gateway)
    running = asyncio.create_task(dispatcher.run())
    async with asyncio.timeout(PATIENCE):
        await engine.enough.wait()
        engine.go.set()
        while await states(desk) != ["started"] * 5:
            await asyncio.sleep(0.01)
        dispatcher.stop()
        await running
    assert engine.most == 2


async def test_large_bodies_are_not_all_at_hand_at_once(
    desk: Desk, engine: SlowEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch, "BYTES_AT_ONCE", 2500)
    webhook = await desk.webhook()
    for text in ("x" * 1000,) * 5 + ("x" * 9000, ""):
        await desk.accepted(webhook, {"text": text})
    dispatcher = Dispatcher(desk.gateway)
    assert [await dispatcher.round() for _ in range(2)] == [2, 1]
    running = asyncio.create_task(dispatcher.run())
    async with asyncio.timeout(PATIENCE):
        for _ in range(9):  # a round that went on would come to its starts in between
            assert await desk.store.deliveries.claim(0.0, 0.0, 1) == []
        assert engine.under_way == 3
        engine.go.set()
        while await states(desk) != ["started"] * 7:
            await asyncio.sleep(0.01)
        dispatcher.stop()
        await running
    assert engine.most == 3


async def test_an_engine_that_is_found_dead_late_is_asked_by_one_delivery(
    desk: Desk, engine: SlowEngine
) -> None:
    engine.down = True
    webhook = await desk.webhook()
    await desk.accepted(webhook, {})
    dispatcher = Dispatcher(desk.gateway)
    assert await dispatcher.round() == 1  # and goes on while its start is under way
    await desk.numbered(webhook, 4)
    engine.go.set()
    await dispatcher.finish()
    dispatcher.stop()  # or it would sleep
    assert await dispatcher.round() == 1
    engine.down = False
    assert await dispatcher.round() == 1
    assert await dispatcher.round() == 2
    await dispatcher.finish()


async def test_what_waits_is_measured_the_less_often_the_longer_that_takes(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, measured = [1_000.0], []

    async def measure(_: Gateway) -> None:
        measured.append(now[0])
        now[0] += 0.25

    monkeypatch.setattr(dispatch, "monotonic", lambda: now[0])
    monkeypatch.setattr(dispatch, "measure", measure)
    dispatcher = Dispatcher(desk.gateway)
    for _ in range(30):
        await dispatcher._work()
        now[0] += 1.0
    assert measured == [1_000.0, 1_013.25, 1_026.5]
    assert not dispatcher._loop.stopping, "the starts of the engine go on"


async def test_an_engine_that_stays_away_is_asked_less_and_less_often(
    desk: Desk, engine: SlowEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.down = True
    engine.go.set()
    dispatcher = Dispatcher(desk.gateway)
    rests = noted_rests(dispatcher, monkeypatch)
    webhook = await desk.webhook()
    await desk.numbered(webhook, 8)
    for _ in range(8):
        while not await dispatcher.round():
            pass
        await dispatcher.finish()
    assert rests == [0.5, 1.0, 2.0, 4.0, 8.0, dispatch.LONGEST_PAUSE, dispatch.LONGEST_PAUSE][: len(rests)]
    assert len(rests) >= 6
    engine.down = False
    await desk.accepted(webhook, {"n": "last"})
    assert await dispatcher.round() == 1
    await dispatcher.finish()
    assert dispatcher._pause == 0.0


@contextmanager
def away_for_writing(desk: Desk) -> Iterator[None]:
    """Somebody else holds what a settlement needs, for longer than it waits."""
    url = desk.store.database.url
    if desk.store.database.is_sqlite:
        with closing(sqlite3.connect(url.database, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            yield
    else:
        with psycopg.connect(url.set(drivername="postgresql").render_as_string(False)) as other:
            other.execute("LOCK TABLE deliveries IN EXCLUSIVE MODE")
            yield


async def waits_for_no_lock(desk: Desk) -> None:
    """The connection that writes: usually it waits for two seconds until another one is done."""
    setting = "PRAGMA busy_timeout = 20" if desk.store.database.is_sqlite else "SET lock_timeout = '20ms'"
    await desk.store.writer.write(lambda connection: connection.exec_driver_sql(setting))


@on_both
async def test_what_the_engine_has_taken_is_written_down_when_the_store_is_back(
    desk: Desk, engine: SlowEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(starting, "SETTLE_EVERY", 0.01)
    await desk.accepted(await desk.webhook(), {})
    await waits_for_no_lock(desk)
    dispatcher, unsettled = Dispatcher(desk.gateway), desk.gateway.runtime.unsettled
    running = asyncio.create_task(dispatcher.run())
    async with asyncio.timeout(PATIENCE):
        await until(lambda: engine.under_way)
        with away_for_writing(desk):
            engine.go.set()
            await until(lambda: unsettled)
            later(desk.gateway, 10 * dispatch.LEASE)  # its lease is over
        while await states(desk) != ["started"]:
            await asyncio.sleep(0.01)
        dispatcher.stop()
        await running
    assert (engine.most, [*engine.times.values()], unsettled) == (1, [1], {})


async def tried_an_hour_too_early(desk: Desk, count: int) -> None:
    await desk.numbered(await desk.webhook(), count)
    now = desk.gateway.clock()
    for delivery in await desk.store.deliveries.claim(now, 0.0, count):
        await desk.store.deliveries.again(delivery, now + 3600.0, "away", now)


@pytest.mark.parametrize("noticed_by", ["itself", "a start", "a probe"])
async def test_what_was_tried_while_the_engine_was_away_is_due_when_it_is_back(
    desk: Desk, engine: SlowEngine, monkeypatch: pytest.MonkeyPatch, noticed_by: str
) -> None:
    monkeypatch.setattr(dispatch, "BROUGHT_FORWARD", 2)
    engine.go.set()
    await tried_an_hour_too_early(desk, 5)
    dispatcher, runtime = Dispatcher(desk.gateway), desk.gateway.runtime
    assert await dispatcher.round() == 0, "it is not known that the engine is back"
    if noticed_by == "itself":
        runtime.engine.back.set()
    else:
        runtime.engine.away = EngineAway(time.monotonic() - starting.AWAY_FOR_LONG, "away")
    if noticed_by == "a start":
        await desk.accepted(await desk.webhook(), {})
    elif noticed_by == "a probe":
        dispatcher._pause = 1.0
        known, runtime.engine.away = runtime.engine.away, EngineAway(0.0, "away", time.monotonic() + 3600.0)
        assert await dispatcher.round() == 0, "it has named a later time"
        runtime.engine.away = known
    for _ in range(2):
        await dispatcher.round()
        await dispatcher.finish()
    assert set(await states(desk)) == {"started"}


@on_both
async def test_what_is_under_way_when_the_engine_is_back_is_not_started_twice(
    desk: Desk, engine: SlowEngine
) -> None:
    await tried_an_hour_too_early(desk, 1)
    dispatcher, back = Dispatcher(desk.gateway), desk.gateway.runtime.engine.back
    engine.name = "embedded"
    for claimed in (1, 0):
        back.set()
        assert await dispatcher.round() == claimed
    engine.go.set()
    await dispatcher.finish()
    assert [*engine.times.values()] == [1]
