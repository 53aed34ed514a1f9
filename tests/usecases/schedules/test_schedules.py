import asyncio
import json
from typing import Any

from sqlalchemy import case, update

from postern.observe.metrics import REGISTRY
from postern.settings import Settings
from postern.stores.sql.tables import schedules as table
from postern.usecases import schedules
from postern.usecases.answers import as_plain
from postern.usecases.deliveries import dispatch
from postern.usecases.history import history
from postern.usecases.schedules import LEASE, Scheduler
from postern.usecases.webhooks import webhooks
from postern.usecases.webhooks.views import ScheduleRun, ScheduleState
from postern.wiring.gateway import opened
from stand_in import Received, Reply, StandIn, stand_in
from support.clock import HeldClock, later
from support.desk import ACTOR, Desk, on_both
from support.waiting import PATIENCE


def source(body: Any, status: int = 200, **headers: str) -> Any:
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    return lambda _: Reply(status, {"Content-Type": "application/json", **headers}, text)


async def scheduled(
    desk: Desk, server: StandIn, every: str = "15m", mapping: dict[str, str] | None = None, **setting: Any
) -> str:
    return await desk.webhook(
        fieldMapping=mapping or {}, schedule={"url": f"{server.url}/orders?key=k", "every": every, **setting}
    )


async def run(desk: Desk, webhook: str) -> ScheduleRun:
    return await schedules.run_now(desk.gateway, ACTOR, webhook)


async def state(desk: Desk, webhook: str) -> ScheduleState:
    shown = (await webhooks.show(desk.gateway, ACTOR, webhook)).schedule_state
    assert shown is not None
    return shown


async def tick(desk: Desk) -> int:
    """What the loop does when it looks, to its end."""
    scheduler = Scheduler(desk.gateway)
    begun = await scheduler.round()
    await asyncio.gather(*scheduler._running)
    return begun


async def test_what_is_fetched_is_mapped_recorded_and_delivered_like_a_call(desk: Desk) -> None:
    async with stand_in(source({"order": {"number": 7}})) as server:
        webhook = await scheduled(desk, server, mapping={"fieldOne": "order.number"})
        done = await run(desk, webhook)
    fetched = await history.show(desk.gateway, ACTOR, done.invocation_ids[0])
    assert (fetched.status, fetched.method) == ("accepted", "GET")
    assert (fetched.code, fetched.http_status) == ("accepted", 200)
    detail = f"fetched {server.url}/orders: 200, 24 bytes"
    assert as_plain(fetched.trace[0]) == {"step": "schedule", "ok": True, "detail": detail}
    assert fetched.deliveries[0].fields == {"fieldOne": "7"}
    assert as_plain(fetched.payload) == {"order": {"number": 7}}
    assert "key=k" not in str(fetched)


@on_both
async def test_a_schedule_runs_at_its_time_and_once(desk: Desk) -> None:
    async with stand_in(source({})) as server:
        webhook = await scheduled(desk, server)
        later(desk.gateway, 31)  # the first one: within half a minute of saving
        assert [await tick(desk), await tick(desk)] == [1, 0]
        later(desk.gateway, 14 * 60)
        assert await tick(desk) == 0
        later(desk.gateway, 60)
        assert [await tick(desk), await tick(desk)] == [1, 0]
        later(desk.gateway, 10 * 3600)
        assert [await tick(desk), await tick(desk)] == [1, 0], "missed runs are one"
        assert len(server.received) == 3
    assert (await state(desk, webhook)).last_result == "accepted"


async def sets_next_run(desk: Desk, at: Any) -> None:
    statement = update(table).values(next_run_at=at)
    await desk.store.writer.write(lambda connection: connection.execute(statement))


@on_both
async def test_a_run_whose_process_died_is_taken_over_and_the_dead_ones_result_is_not_written(
    desk: Desk,
) -> None:
    async with stand_in(source({"n": 1})) as server:
        webhook = await scheduled(desk, server)
        later(desk.gateway, 15 * 60 + 30)
        (dead,) = await desk.store.schedules.claim(desk.gateway.clock(), LEASE, 10)
        assert await tick(desk) == 0
        later(desk.gateway, LEASE + 1)
        assert await tick(desk) == 1
        assert await schedules.run(desk.gateway, dead) is None
    found = await history.listing(desk.gateway, ACTOR, history.HistoryFilter(webhook_id=webhook))
    assert len(found.items) == 1


async def test_a_run_under_way_when_its_process_ends_is_begun_again_at_once(desk: Desk) -> None:
    asked: asyncio.Queue[Received] = asyncio.Queue()

    async def silent(received: Received) -> Reply:
        await asked.put(received)
        await asyncio.Event().wait()
        raise AssertionError

    async with stand_in(silent) as server:
        webhook = await scheduled(desk, server)
        later(desk.gateway, 31)
        for _ in range(2):
            scheduler = Scheduler(desk.gateway)
            running = asyncio.create_task(scheduler.run())
            await asyncio.wait_for(asked.get(), PATIENCE)
            assert not await desk.store.schedules.any_due(desk.gateway.clock())
            scheduler.stop()
            await asyncio.wait_for(running, PATIENCE)
    assert await desk.store.schedules.any_due(desk.gateway.clock())
    assert (await state(desk, webhook)).last_result is None


@on_both
async def test_a_process_that_is_alone_begins_again_what_a_dead_one_had_claimed_and_leaves_a_commands_run(
    settings: Settings,
) -> None:
    async with stand_in(source({"n": 1})) as server:
        async with opened(settings) as gateway:
            desk = Desk(gateway)
            claimed, by_hand = await scheduled(desk, server), await scheduled(desk, server)
            # Only the one is due, however slow the machine is.
            due = case((table.c.webhook_id == claimed, 1), else_=table.c.next_run_at + 3_600_000)
            await sets_next_run(desk, due)
            (one,) = await desk.store.schedules.claim(gateway.clock(), LEASE, 10)
            assert one.webhook_id == claimed
            taken = await desk.store.schedules.take(by_hand, gateway.clock(), LEASE)
        async with opened(settings, "http://127.0.0.1:1") as gateway:
            assert await Desk(gateway).store.schedules.any_due(gateway.clock())
            assert await schedules.run(gateway, taken) is not None


async def test_duplicate_protection_holds_for_what_is_fetched(desk: Desk) -> None:
    async with stand_in(source({"n": 1})) as server:
        schedule = {"url": server.url, "every": 60}
        webhook = await desk.webhook(schedule=schedule, duplicateProtection={"enabled": True, "key": "n"})
        first, second = (await run(desk, webhook)).invocation_ids + (await run(desk, webhook)).invocation_ids
    fetched = await history.show(desk.gateway, ACTOR, second)
    assert (fetched.status, fetched.duplicate_of) == ("duplicate", first)


async def test_failures_are_recorded_and_after_some_the_schedule_pauses_and_says_so(desk: Desk) -> None:
    async with stand_in(source({}, 500)) as server:
        webhook = await scheduled(desk, server, pauseAfterFailures=2)
        done = await run(desk, webhook)
        fetched = await history.show(desk.gateway, ACTOR, done.invocation_ids[0])
        assert (fetched.code, fetched.http_status) == ("fetch_failed", 500)
        assert (await run(desk, webhook)).paused
        shown = await webhooks.show(desk.gateway, ACTOR, webhook)
        assert shown.schedule_state.paused_reason == "the source answered 500"
        assert shown.schedule_state.next_run_at is None
        assert "paused itself after 2 failed runs" in " ".join(shown.warnings)
        later(desk.gateway, 86400)
        assert await tick(desk) == 0
        assert await paused(desk) == 1
        await webhooks.change(desk.gateway, ACTOR, webhook, {"enabled": False})
        assert await paused(desk) == 0
        await webhooks.change(desk.gateway, ACTOR, webhook, {"enabled": True})
        assert await paused(desk) == 1
        for enabled in (False, True):  # which ends the pause, too
            await webhooks.change(desk.gateway, ACTOR, webhook, {"schedule": {"enabled": enabled}})
        assert ((now := await state(desk, webhook)).paused_at, now.consecutive_failures) == (None, 0)
        assert (await run(desk, webhook)).paused is False
        assert (await run(desk, webhook)).paused
        await schedules.resume(desk.gateway, ACTOR, webhook)
        assert (await state(desk, webhook)).next_run_at is not None
        assert await paused(desk) == 0


async def paused(desk: Desk) -> float | None:
    await dispatch.measure(desk.gateway)
    return REGISTRY.get_sample_value("postern_schedules_paused")


async def test_a_paused_schedule_goes_on_when_a_run_by_hand_succeeds(desk: Desk) -> None:
    statuses = iter([500, 200])
    async with stand_in(lambda _: Reply(next(statuses), {}, b"{}")) as server:
        webhook = await scheduled(desk, server, pauseAfterFailures=1)
        assert (await run(desk, webhook)).paused
        assert (await run(desk, webhook)).result == "accepted"
    shown = await state(desk, webhook)
    assert (shown.paused_at, shown.consecutive_failures, shown.next_run_at is not None) == (None, 0, True)


async def test_a_disabled_or_deleted_webhook_fetches_nothing(desk: Desk) -> None:
    async with stand_in(source({})) as server:
        disabled, off, deleted = [await scheduled(desk, server) for _ in range(3)]
        await webhooks.switch(desk.gateway, ACTOR, disabled, False)
        await webhooks.change(desk.gateway, ACTOR, off, {"schedule": {"enabled": False}})
        await webhooks.remove(desk.gateway, ACTOR, deleted)
        later(desk.gateway, 86400)
        assert await tick(desk) == 0
        await webhooks.switch(desk.gateway, ACTOR, disabled, True)
        later(desk.gateway, 86400)
        assert await tick(desk) == 1


async def test_a_renamed_webhook_keeps_its_time_and_a_new_interval_begins_at_once(desk: Desk) -> None:
    async with stand_in(source({})) as server:
        webhook = await scheduled(desk, server)
        planned = (await state(desk, webhook)).next_run_at
        later(desk.gateway, 31)
        await webhooks.change(desk.gateway, ACTOR, webhook, {"name": "Renamed"})
        assert (await state(desk, webhook)).next_run_at == planned
        assert await tick(desk) == 1
        later(desk.gateway, 31)
        assert await tick(desk) == 0
        await webhooks.change(desk.gateway, ACTOR, webhook, {"schedule": {"every": "1m"}})
        later(desk.gateway, 31)
        assert await tick(desk) == 1


async def test_a_run_by_hand_takes_no_timed_run_away(desk: Desk) -> None:
    later(desk.gateway, 0)  # or its time could come between two of these lines
    async with stand_in(source({"n": 1})) as server:
        for when in ({"every": "1d"}, {"every": None, "cron": "0 9 * * *"}):
            webhook = await scheduled(desk, server, **when)  # type: ignore[arg-type]
            planned = str((await state(desk, webhook)).next_run_at)
            assert [str((await run(desk, webhook)).next_run_at) for _ in range(3)] == [planned] * 3


async def test_a_timed_run_is_followed_by_the_next_time_and_not_by_itself(desk: Desk) -> None:
    async with stand_in(source({"n": 1})) as server:
        webhook = await scheduled(desk, server, every="1h")
        planned = (await state(desk, webhook)).next_run_at
        HeldClock(desk.gateway, planned)  # told in whole milliseconds: a hair before its time
        assert await tick(desk) == 1
        assert (await state(desk, webhook)).next_run_at - planned > 3000
