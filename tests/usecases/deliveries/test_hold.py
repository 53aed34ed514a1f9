import pytest
from sqlalchemy import select

from postern.core.deliveries.delivery import GIVE_UP_AFTER
from postern.core.history.invocation import HistoryFilter
from postern.stores.sql.tables import samples
from postern.usecases.access import audit
from postern.usecases.answers import as_plain
from postern.usecases.deliveries import holds, replays
from postern.usecases.deliveries.dispatch import BATCH, Dispatcher, catch_up
from postern.usecases.deliveries.replays import Replayer
from postern.usecases.history import history
from postern.usecases.history import samples as recorded
from postern.usecases.webhooks import bin, webhooks
from support.clock import later
from support.desk import ACTOR, Desk, on_both
from support.house import NotingEngine
from usecases.deliveries.test_dispatch import states


async def everything_due(desk: Desk) -> list[str]:
    desk.gateway.engine = engine = NotingEngine()
    dispatcher = Dispatcher(desk.gateway)
    while await dispatcher.round():
        await dispatcher.finish()
    desk.gateway.engine = None
    assert set(engine.times.values()) <= {1}
    return [one.invocation_id for one in engine.started.values()]


@on_both
async def test_release_starts_what_waited_in_the_order_it_came(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(holds, "STEP", 40)
    webhook = await desk.webhook()
    await holds.hold(desk.gateway, ACTOR, webhook)
    came = [await desk.accepted(webhook, {"n": n}) for n in range(BATCH + 30)]
    assert (await holds.release(desk.gateway, ACTOR, webhook)).released == len(came)
    came.append(await desk.accepted(webhook, {"n": "after the release"}))
    assert await everything_due(desk) == came
    await holds.hold(desk.gateway, ACTOR, webhook)
    first, second = [await desk.accepted(webhook, {"n": n}) for n in range(2)]
    assert await desk.store.deliveries.unhold(webhook, "queued", desk.gateway.clock(), 1) == 1
    assert await everything_due(desk) == [first], f"a step at a time, and {second} is in the next one"


async def test_a_release_that_was_killed_goes_on(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    webhook, other = await desk.webhook(), await desk.webhook("On hold")
    for one in (webhook, other):
        await holds.hold(desk.gateway, ACTOR, one)
    came = await desk.numbered(webhook, 3)
    await desk.numbered(other, 1)

    async def killed(*_: object) -> int:
        raise RuntimeError("killed")

    with monkeypatch.context() as patch, pytest.raises(RuntimeError):
        patch.setattr(holds, "move", killed)
        await holds.release(desk.gateway, ACTOR, webhook)
    await catch_up(desk.gateway)
    assert await everything_due(desk) == [], "whoever releases may still be at it"
    later(desk.gateway, holds.LONGEST_RELEASE + 1)
    await catch_up(desk.gateway)
    assert await everything_due(desk) == came


async def test_dropped_deliveries_never_start_and_can_be_replayed(desk: Desk) -> None:
    webhook = await desk.webhook()
    await holds.hold(desk.gateway, ACTOR, webhook)
    invocation = await desk.accepted(webhook, {"n": 1})
    dropped = {"webhookId": webhook, "held": True, "waiting": 0, "dropped": 1}
    assert as_plain(await holds.drop(desk.gateway, ACTOR, webhook)) == dropped
    await holds.release(desk.gateway, ACTOR, webhook)
    assert await everything_due(desk) == []
    assert (await history.show(desk.gateway, ACTOR, invocation)).status == "dropped"
    await history.replay(desk.gateway, ACTOR, invocation)
    assert await everything_due(desk) == [invocation]


async def test_what_waits_behind_the_hold_of_a_webhook_is_dropped_when_it_is_gone_for_good(
    desk: Desk,
) -> None:
    webhook = await desk.webhook()
    await holds.hold(desk.gateway, ACTOR, webhook)
    await recorded.arm(desk.gateway, ACTOR, webhook)
    await desk.accepted(webhook, {"n": 1})
    await webhooks.remove(desk.gateway, ACTOR, webhook)
    assert await states(desk) == ["held"]
    assert len(await desk.rows(select(samples))) == 1
    await bin.delete_for_good(desk.gateway, ACTOR, webhook)
    assert await states(desk) == ["dropped"]
    assert await desk.rows(select(samples)) == []


@on_both
async def test_what_is_judged_during_the_hold_and_stored_after_its_release_does_not_wait_for_ever(
    desk: Desk,
) -> None:
    webhook = await desk.webhook()
    await holds.hold(desk.gateway, ACTOR, webhook)
    await holds.release(desk.gateway, ACTOR, webhook)
    now = desk.gateway.runtime.directory.by_id(webhook)
    assert now is not None and not now.held
    now.held = True  # as another process knows it that has not heard of the release yet
    invocation = await desk.accepted(webhook, {"n": 1})
    assert await everything_due(desk) == [invocation]
    await history.replay(desk.gateway, ACTOR, invocation)
    assert await everything_due(desk) == [invocation]
    plan = await replays.plan(desk.gateway, ACTOR, HistoryFilter(webhook))
    await replays.begin(desk.gateway, ACTOR, plan.id)
    await Replayer(desk.gateway).round()
    assert await everything_due(desk) == [invocation]


async def test_a_long_hold_does_not_use_up_the_time_for_trying(desk: Desk) -> None:
    webhook = await desk.webhook()
    await holds.hold(desk.gateway, ACTOR, webhook)
    await desk.accepted(webhook, {"n": 1})
    later(desk.gateway, GIVE_UP_AFTER + 60)
    await holds.release(desk.gateway, ACTOR, webhook)
    desk.gateway.engine = engine = NotingEngine()
    engine.down = True
    dispatcher = Dispatcher(desk.gateway)
    dispatcher.stop()
    await dispatcher.round()
    await dispatcher.finish()
    assert await states(desk) == ["queued"]
    desk.gateway.engine = None


async def test_each_step_tells_how_many_wait_and_what_is_let_go_is_due_at_once(desk: Desk) -> None:
    webhook, other = await desk.webhook(), await desk.webhook()
    held = {"webhookId": webhook, "held": True, "waiting": 0}
    assert as_plain(await holds.hold(desk.gateway, ACTOR, webhook)) == held
    await holds.hold(desk.gateway, ACTOR, other)
    for one in (webhook, webhook, other):
        await desk.accepted(one, {"n": 1})
    assert as_plain(await holds.hold(desk.gateway, ACTOR, webhook)) == {**held, "waiting": 2}
    desk.gateway.runtime.engine.due.clear()
    released = {**held, "held": False, "released": 2}
    assert as_plain(await holds.release(desk.gateway, ACTOR, webhook)) == released
    assert desk.gateway.runtime.engine.due.is_set()
    desk.gateway.runtime.engine.due.clear()
    assert (await holds.release(desk.gateway, ACTOR, webhook)).released == 0
    assert not desk.gateway.runtime.engine.due.is_set()
    await holds.drop(desk.gateway, ACTOR, other)
    noted, of_other = [
        [one.action for one in (await audit.listing(desk.gateway, ACTOR, subject=id)).items]
        for id in (webhook, other)
    ]
    assert noted == ["webhook released", "webhook held", "webhook created"], "nothing that changed nothing"
    assert of_other[0] == "held deliveries dropped"
