import msgspec
import pytest
from sqlalchemy import select

from postern.core.deliveries.delivery import GIVE_UP_AFTER, EngineUnavailable, Started, Trigger
from postern.core.history.invocation import HistoryFilter
from postern.core.problems import Refused
from postern.stores.sql.tables import deliveries, samples
from postern.usecases.access import audit
from postern.usecases.answers import as_plain
from postern.usecases.deliveries import holds, replays
from postern.usecases.deliveries.dispatch import BATCH, Dispatcher
from postern.usecases.deliveries.replays import Replayer
from postern.usecases.history import history
from postern.usecases.history import samples as recorded
from postern.usecases.webhooks import bin, webhooks
from support.desk import ACTOR, Desk


class Recorder:
    """An engine that notes what it was asked to start."""

    name = "recorder"
    asked_after = None

    def __init__(self) -> None:
        self.started: list[str] = []
        self.is_there = True

    async def start(self, trigger: Trigger) -> Started:
        if not self.is_there:
            raise EngineUnavailable("away")
        self.started.append(trigger.invocation_id)
        return Started(1)


async def everything_due(desk: Desk) -> list[str]:
    engine = Recorder()
    desk.gateway.engine = engine  # type: ignore[assignment]
    dispatcher = Dispatcher(desk.gateway)
    while await dispatcher.round():
        await dispatcher.finish()
    desk.gateway.engine = None
    return engine.started


async def test_a_held_webhook_answers_200_and_starts_nothing(desk: Desk) -> None:
    webhook = await desk.webhook(synchronousResponse={"enabled": True})
    await holds.hold(desk.gateway, ACTOR, webhook)
    answer = await desk.call(webhook, {"n": 1})
    assert (answer.status, msgspec.json.decode(answer.body)["status"]) == (200, "accepted")
    assert await everything_due(desk) == []
    shown = await history.show(desk.gateway, ACTOR, msgspec.json.decode(answer.body)["invocationId"])
    assert shown.status == "held"


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


async def test_who_has_seen_an_older_version_holds_and_releases_nothing(desk: Desk) -> None:
    webhook = await desk.webhook()
    seen = (await webhooks.show(desk.gateway, ACTOR, webhook)).version
    await webhooks.change(desk.gateway, ACTOR, webhook, {"name": "Another"})

    async def is_held() -> bool:
        return (await webhooks.show(desk.gateway, ACTOR, webhook)).held

    with pytest.raises(Refused) as refused:
        await holds.hold(desk.gateway, ACTOR, webhook, seen)
    assert (refused.value.code, await is_held()) == ("version_conflict", False)
    await holds.hold(desk.gateway, ACTOR, webhook, seen + 1)
    with pytest.raises(Refused) as refused:
        await holds.release(desk.gateway, ACTOR, webhook, seen + 1)
    assert (refused.value.code, await is_held()) == ("version_conflict", True)


async def test_dropped_deliveries_never_start_and_can_be_replayed(desk: Desk) -> None:
    webhook = await desk.webhook()
    await holds.hold(desk.gateway, ACTOR, webhook)
    invocation = await desk.accepted(webhook, {"n": 1})
    assert as_plain(await holds.drop(desk.gateway, ACTOR, webhook)) == {
        "webhookId": webhook,
        "held": True,
        "waiting": 0,
        "dropped": 1,
    }
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
    assert [row.state for row in await desk.rows(select(deliveries.c.state))] == ["held"]
    assert len(await desk.rows(select(samples))) == 1
    await bin.delete_for_good(desk.gateway, ACTOR, webhook)
    assert [row.state for row in await desk.rows(select(deliveries.c.state))] == ["dropped"]
    assert await desk.rows(select(samples)) == []


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
    later = desk.gateway.clock() + GIVE_UP_AFTER + 60
    desk.gateway.clock = lambda: later
    await holds.release(desk.gateway, ACTOR, webhook)
    engine = Recorder()
    engine.is_there = False
    desk.gateway.engine = engine  # type: ignore[assignment]
    dispatcher = Dispatcher(desk.gateway)
    dispatcher.stop()
    await dispatcher.round()
    await dispatcher.finish()
    assert [row.state for row in await desk.rows(select(deliveries.c.state))] == ["queued"]
    desk.gateway.engine = None


async def test_each_step_tells_how_many_wait_and_what_is_let_go_is_due_at_once(desk: Desk) -> None:
    webhook, other = await desk.webhook(), await desk.webhook()
    assert as_plain(await holds.hold(desk.gateway, ACTOR, webhook)) == {
        "webhookId": webhook,
        "held": True,
        "waiting": 0,
    }
    await holds.hold(desk.gateway, ACTOR, other)
    for one in (webhook, webhook, other):
        await desk.accepted(one, {"n": 1})
    again = await holds.hold(desk.gateway, ACTOR, webhook)
    assert (again.held, again.waiting) == (True, 2)
    desk.gateway.runtime.due.clear()
    assert as_plain(await holds.release(desk.gateway, ACTOR, webhook)) == {
        "webhookId": webhook,
        "held": False,
        "waiting": 0,
        "released": 2,
    }
    assert desk.gateway.runtime.due.is_set()
    desk.gateway.runtime.due.clear()
    assert (await holds.release(desk.gateway, ACTOR, webhook)).released == 0
    assert not desk.gateway.runtime.due.is_set()
    await holds.drop(desk.gateway, ACTOR, other)
    noted = [one.action for one in (await audit.listing(desk.gateway, ACTOR, subject=webhook)).items]
    assert noted == ["webhook released", "webhook held", "webhook created"], (
        "what changed nothing is not noted"
    )
    assert (await audit.listing(desk.gateway, ACTOR, subject=other)).items[
        0
    ].action == "held deliveries dropped"
