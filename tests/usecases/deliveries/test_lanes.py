"""Webhooks' own lanes: what is dead there holds nobody else up, however much waits."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from sqlalchemy import select

from postern.core.deliveries.delivery import EngineUnavailable, Started, Trigger
from postern.stores.sql.tables import deliveries
from postern.usecases.deliveries import dispatch
from postern.usecases.deliveries.dispatch import Dispatcher, Lanes
from postern.usecases.runtime.process import EngineAway
from support.desk import Desk
from support.house import NotingEngine
from support.waiting import PATIENCE, until
from usecases.deliveries.test_dispatch import noted_rests


class Partly(NotingEngine):
    """Takes nothing of the webhooks that are dead."""

    def __init__(self) -> None:
        super().__init__()
        self.dead: set[str] = set()
        self.silent = False
        self.under_way = self.most = 0
        self.asked: list[str] = []

    async def start(self, trigger: Trigger) -> Started:
        self.asked.append(trigger.webhook_id)
        if trigger.webhook_id not in self.dead:
            return await super().start(trigger)
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            if self.silent:
                await asyncio.Event().wait()
            raise EngineUnavailable("the engine cannot be reached")
        finally:
            self.under_way -= 1


@pytest.fixture
async def engine(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Partly]:
    monkeypatch.setattr(dispatch, "LONGEST_BATCH", 0.01)
    desk.gateway.engine = engine = Partly()
    yield engine
    desk.gateway.engine = None


async def with_lane(desk: Desk, name: str = "Orders") -> str:
    webhook = await desk.webhook(name)
    known = desk.gateway.runtime.directory.by_id(webhook)
    assert known is not None
    known.lane = webhook
    return webhook


async def states(desk: Desk, webhook: str) -> list[str]:
    asked = select(deliveries.c.state).where(deliveries.c.webhook_id == webhook)
    return [row.state for row in await desk.rows(asked)]


async def all_started(desk: Desk, webhook: str, count: int) -> None:
    while await states(desk, webhook) != ["started"] * count:
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("silent", [True, False])
async def test_a_dead_one_delays_no_other_and_has_one_start_under_way(
    desk: Desk, engine: Partly, silent: bool
) -> None:
    dead, well, plain = await with_lane(desk), await with_lane(desk), await desk.webhook()
    engine.dead, engine.silent = {dead}, silent
    await desk.numbered(dead, 30)
    lanes = Lanes(desk.gateway)
    running = asyncio.create_task(lanes.run())
    async with asyncio.timeout(PATIENCE):
        await until(lambda: engine.asked)
        for webhook in (well, plain):
            await desk.numbered(webhook, 25)
        for webhook in (well, plain):
            await all_started(desk, webhook, 25)
        assert engine.most == 1
        assert desk.gateway.runtime.engine.away is None, "the engine itself is not away"
        assert set(await states(desk, dead)) == {"queued"}
        engine.dead.clear()
        if silent:  # it is given up when its time is over
            for _, task in [*lanes._running.values()]:
                task.cancel()
        else:
            await all_started(desk, dead, 30)
        lanes.stop()
        await running
    assert desk.gateway.runtime.bytes_of_lanes == 0 or silent


async def test_many_dead_ones_are_tried_the_less_often_the_more_they_are(
    desk: Desk, engine: Partly, monkeypatch: pytest.MonkeyPatch
) -> None:
    webhook = await with_lane(desk)
    engine.dead = {webhook}
    for number in range(599):
        desk.gateway.runtime.lane(f"wh_{number}").away = EngineAway(0.0, "dead", 0.0)
    dispatcher = Dispatcher(desk.gateway, webhook)
    rests = noted_rests(dispatcher, monkeypatch)
    await desk.numbered(webhook, 10)
    for _ in range(10):
        await dispatcher.round()
        await dispatcher.finish()
    assert rests == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]
    await dispatcher._work()
    assert dispatcher._loop.every == 60.0, "nor is the database asked more often"


async def test_a_lane_is_looked_after_as_long_as_something_waits_there(desk: Desk, engine: Partly) -> None:
    webhook = await with_lane(desk)
    await desk.numbered(webhook, 3)
    desk.gateway.runtime.lanes_due.clear()  # as if another process had left them
    lanes = Lanes(desk.gateway)
    running = asyncio.create_task(lanes.run())
    async with asyncio.timeout(PATIENCE):
        for count in (3, 4, 5):
            await all_started(desk, webhook, count)
            await until(lambda: not lanes._running.keys() - {""})
            if count < 5:
                await desk.accepted(webhook, {"n": count})
        lanes.stop()
        await running


async def test_one_that_is_back_gets_everything_that_was_tried_meanwhile(desk: Desk, engine: Partly) -> None:
    webhook = await with_lane(desk)
    await desk.numbered(webhook, 3)
    now = desk.gateway.clock()
    for delivery in await desk.store.deliveries.claim(now, 0.0, 3, lane=webhook):
        await desk.store.deliveries.again(delivery, now + 3600.0, "away", now)
    lanes = Lanes(desk.gateway)
    desk.gateway.runtime.lane(webhook).back.set()
    desk.gateway.runtime.starts_due(webhook)
    running = asyncio.create_task(lanes.run())
    async with asyncio.timeout(PATIENCE):
        await all_started(desk, webhook, 3)
        lanes.stop()
        await running


async def test_bodies_of_all_lanes_together_are_bounded(
    desk: Desk, engine: Partly, monkeypatch: pytest.MonkeyPatch
) -> None:
    webhook = await with_lane(desk)
    await desk.accepted(webhook, {})
    dispatcher = Dispatcher(desk.gateway, webhook)
    monkeypatch.setattr(desk.gateway.runtime, "bytes_of_lanes", dispatch.BYTES_OF_LANES)
    dispatcher._state.due.set()
    assert (await dispatcher.round(), dispatcher._state.due.is_set()) == (0, False), "it looks again later"
    assert await dispatcher._waits()
    monkeypatch.setattr(desk.gateway.runtime, "bytes_of_lanes", 0)
    assert await dispatcher.round() == 1
    await dispatcher.finish()
    dispatcher._state.away = EngineAway(0.0, "dead", 0.0)
    assert (await dispatcher._waits(), dispatcher._state.away) == (False, None)


async def test_where_a_delivery_waits_follows_its_webhooks_setting(desk: Desk, engine: Partly) -> None:
    webhook = await desk.webhook()
    await desk.accepted(webhook, {})
    known = desk.gateway.runtime.directory.by_id(webhook)
    assert known is not None
    known.lane, engine.dead = webhook, {webhook}
    dispatcher = Dispatcher(desk.gateway)
    assert await dispatcher.round() == 1
    await dispatcher.finish()
    assert (list(await desk.store.deliveries.lanes()), dispatcher._unavailable) == ([webhook], False)
    assert desk.gateway.runtime.engine.away is None


async def test_a_process_that_cannot_start_what_waits_in_a_lane_leaves_it_to_others(
    desk: Desk, engine: Partly
) -> None:
    webhook, gone = await with_lane(desk), "wh_gone"
    lanes = Lanes(desk.gateway)
    assert [lanes._has_receiver(one) for one in (webhook, gone)] == [True, True]
    desk.gateway.engine = None
    assert [lanes._has_receiver(one) for one in (webhook, gone)] == [False, True]
