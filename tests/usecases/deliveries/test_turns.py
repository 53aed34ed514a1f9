"""Calls of a webhook with turns: so many at once, one at a time for each value in the order of acceptance, the newest of a burst."""

from typing import Any

import pytest

from postern.core.deliveries.delivery import End
from postern.core.history.invocation import Delivery, HistoryFilter
from postern.core.problems import Refused
from postern.usecases.alarms import incidents, judging
from postern.usecases.alarms.judging import AlarmLoop
from postern.usecases.alarms.views import Incident
from postern.usecases.calls import readmission
from postern.usecases.deliveries import holds, replays, starting, turns
from postern.usecases.deliveries.dispatch import Dispatcher, catch_up
from postern.usecases.history import history
from postern.usecases.history.endings import EndingsLoop
from postern.usecases.webhooks import webhooks
from postern.usecases.webhooks.views import Webhook
from support.clock import HeldClock
from support.house import OWNER, House, NotingEngine
from support.refusals import fields_refused


class EndingEngine(NotingEngine):
    """Tells when runs end, which is when the test says so."""

    asked_after: float | None = 1.0


@pytest.fixture
def clock(house: House) -> HeldClock:
    house.gateway.engine = house.engine = EndingEngine()
    return HeldClock(house.gateway)


async def called(house: House, webhook: Webhook, *customers: str) -> list[str]:
    return [await house.recorded(webhook, b'{"customer":"%s"}' % one.encode()) for one in customers]


async def starts(house: House, webhook: Webhook) -> list[str]:
    """The calls that are started now."""
    before = set(house.engine.started)
    dispatcher = Dispatcher(house.gateway, webhook.id)
    while await dispatcher.round():
        await dispatcher.finish()
    return sorted(key.rpartition(".")[0] for key in house.engine.started if key not in before)


async def ended(house: House, *invocations: str) -> None:
    for one in invocations:
        house.gateway.runtime.endings.ended(f"{one}.1", End("completed", house.gateway.clock()))
    await EndingsLoop(house.gateway).write()


async def delivery(house: House, invocation: str) -> Delivery:
    return (await house.story(invocation)).deliveries[-1]


async def waits_for(house: House, invocation: str) -> str:
    shown = (await history.show(house.gateway, OWNER, invocation)).deliveries[-1].waits_for or ""
    return shown.partition(": ")[2]


async def test_one_at_a_time_for_each_value_until_its_end(house: House, clock: HeldClock) -> None:
    webhook = await house.webhook(turns={"by": "customer"})
    a1, b1, a2, a3, b2 = await called(house, webhook, "a", "b", "a", "a", "b")
    assert await starts(house, webhook) == [a1, b1]
    assert await starts(house, webhook) == []
    assert await waits_for(house, a3) == f"{a1} is at work; 1 before it"
    await ended(house, a1)
    assert house.gateway.runtime.lanes_due == {webhook.id}, "the end has woken the lane"
    assert await starts(house, webhook) == [a2]
    await ended(house, b1, a2)
    assert await starts(house, webhook) == [a3, b2]


async def test_so_many_at_once(house: House, clock: HeldClock) -> None:
    webhook = await house.webhook(turns={"atOnce": 2})
    calls = await called(house, webhook, *"abcde")
    assert await starts(house, webhook) == calls[:2]
    clock.now += 500
    assert await house.gateway.store.deliveries.backlog(clock.now) == (3, 0.0), (
        "what waits for its turn is not due"
    )
    assert await waits_for(house, calls[3]) == "2 are at work, and 2 may be; 1 before it"
    await ended(house, calls[1])
    assert await starts(house, webhook) == [calls[2]]
    await ended(house, calls[0], calls[2])
    assert await starts(house, webhook) == calls[3:]


async def test_runs_of_an_engine_that_told_their_ends_hold_nobody_up_at_one_that_does_not(
    house: House, clock: HeldClock
) -> None:
    webhook = await house.webhook(turns={"atOnce": 1, "by": "customer"})
    a1, a2, b1 = await called(house, webhook, "a", "a", "b")
    assert await starts(house, webhook) == [a1]
    house.gateway.engine = house.engine = NotingEngine()
    assert await starts(house, webhook) == [a2, b1], "there each counts until it was taken"


async def test_one_that_is_lost_holds_nobody_up(house: House, clock: HeldClock) -> None:
    webhook = await house.webhook(turns={"by": "customer"})
    a1, a2 = await called(house, webhook, "a", "a")
    assert await starts(house, webhook) == [a1]
    clock.now += 60
    await EndingsLoop(house.gateway).ask()
    assert (await delivery(house, a1)).state == "lost"
    assert await starts(house, webhook) == [a2]


async def test_the_newest_after_the_quiet(house: House, clock: HeldClock) -> None:
    webhook = await house.webhook(
        turns={"by": "customer", "newestAfterSeconds": 10, "longestWaitSeconds": 25}
    )
    a1, a2, b1 = await called(house, webhook, "a", "a", "b")
    assert await starts(house, webhook) == []
    assert "a newer one starts after 10 s without another, at the latest at " in await waits_for(house, a1)
    clock.now += 10
    assert await starts(house, webhook) == sorted([a2, b1])
    first = (await history.show(house.gateway, OWNER, a1)).deliveries[0]
    assert (first.state, first.superseded_by) == ("superseded", a2)
    assert [one.id for one in await house.history(status="superseded")] == [a1]
    await ended(house, a2, b1)
    burst = []
    for _ in range(5):
        burst += await called(house, webhook, "a")
        assert await starts(house, webhook) == []
        clock.now += 6
    assert await starts(house, webhook) == [burst[-1]], "however often calls come"


async def test_a_clock_that_is_set_back_holds_no_burst_for_longer_than_its_quiet(
    house: House, clock: HeldClock
) -> None:
    webhook = await house.webhook(turns={"newestAfterSeconds": 10})
    (one,) = await called(house, webhook, "a")
    clock.now -= 7200
    await catch_up(house.gateway)
    clock.now += 31
    assert await starts(house, webhook) == [one]


async def test_one_that_fails_is_tried_before_the_next_of_its_value_and_then_the_next_goes(
    house: House, clock: HeldClock
) -> None:
    webhook = await house.webhook(turns={"by": "customer", "atOnce": 1})
    a1, a2, b1 = await called(house, webhook, "a", "a", "b")
    house.engine.down = True
    assert await starts(house, webhook) == []
    house.engine.down = False
    clock.now += 1
    assert a2 not in await starts(house, webhook)
    await ended(house, a1, b1)
    house.engine.refuses = "it is not what it should be"
    assert await starts(house, webhook) == []
    house.engine.refuses = ""
    assert (await delivery(house, a2)).state == "failed"


async def incident(house: House, clock: HeldClock) -> Incident | None:
    """The only one, open or over, a quarter of a minute later."""
    clock.now += 15
    await AlarmLoop(house.gateway).round()
    found = (await incidents.listing(house.gateway, OWNER)).items
    assert len(found) <= 1
    return found[0] if found else None


async def test_an_incident_names_the_one_at_the_head_while_it_is_tried_and_when_the_next_went(
    house: House, clock: HeldClock
) -> None:
    webhook = await house.webhook(turns={"by": "customer"})
    a1, a2 = await called(house, webhook, "a", "a")
    house.engine.down = house.gateway.runtime.clock_is_trusted = True
    for later in (1, 400):
        await starts(house, webhook)
        clock.now += later
    found = await incident(house, clock)
    behind = f"{a1} is tried again, and the calls with the same customer wait behind it."
    assert found is not None and found.sentence.endswith(f"tries (1). {behind}")
    clock.now += starting.GIVE_UP_AFTER
    await starts(house, webhook)
    house.engine.down = False
    clock.now += 60
    assert await starts(house, webhook) == [a2]
    found = await incident(house, clock)
    passed = f"{a1} was given up, and the calls with the same customer went on without it."
    assert found is not None and found.closed_at is None and found.sentence.endswith(f"it (1). {passed}")
    await history.replay(house.gateway, OWNER, a1)
    await ended(house, a2)
    assert await starts(house, webhook) == [a1]
    found = await incident(house, clock)
    assert found is not None and found.closed_at and found.sentence.endswith(passed)


@pytest.mark.parametrize(
    ("given", "others"), [({"by": "customer"}, "the calls with the same customer"), ({}, "")]
)
async def test_one_that_is_refused_when_its_turn_has_come_at_last_is_an_incident_where_there_is_an_order(
    house: House, clock: HeldClock, given: Any, others: str
) -> None:
    webhook = await house.webhook(turns={"atOnce": 1} | given)
    a1, a2, a3 = await called(house, webhook, *"aaa")
    await starts(house, webhook)
    clock.now += 7200  # it waited for so long
    house.engine.refuses = "it is not what it should be"
    await ended(house, a1)
    dispatcher = Dispatcher(house.gateway, webhook.id)
    await dispatcher.round()
    await dispatcher.finish()
    house.engine.refuses = ""
    assert (await delivery(house, a2)).state == "failed"
    assert await starts(house, webhook) == [a3]
    found = await incident(house, clock)
    assert (found is not None) is bool(others)
    if found is not None:
        assert found.sentence.endswith(f"it (1). {a2} was given up, and {others} went on without it.")
        await history.replay(house.gateway, OWNER, a2)
        await ended(house, a3)
        assert await starts(house, webhook) == [a2]
        for _ in range(2):
            found = await incident(house, clock)
            assert found is not None and found.closed_because == "each of its calls has gone through"


@pytest.mark.parametrize(("many", "more"), [(4, "2"), (3, "at least 2")])
async def test_where_no_more_are_read_it_says_that_so_many_at_least_were_given_up(
    house: House, clock: HeldClock, monkeypatch: pytest.MonkeyPatch, many: int, more: str
) -> None:
    monkeypatch.setattr(judging, "MANY", many)
    webhook = await house.webhook(turns={"by": "customer"})
    await called(house, webhook, *"abc")
    house.engine.refuses = "it is not what it should be"
    await starts(house, webhook)
    found = await incident(house, clock)
    assert found is not None and f" (and {more} more, each) was given up" in found.sentence


async def test_one_at_the_head_has_its_three_days_from_its_turn_on(house: House, clock: HeldClock) -> None:
    webhook = await house.webhook(turns={"by": "customer"})
    a1, a2 = await called(house, webhook, "a", "a")
    await starts(house, webhook)
    clock.now += starting.GIVE_UP_AFTER + 1
    await ended(house, a1)
    house.gateway.runtime.clock_is_trusted = house.engine.down = True
    await starts(house, webhook)
    assert (await delivery(house, a2)).state == "queued"


async def test_a_person_lets_one_go_out_of_its_turn(house: House, clock: HeldClock) -> None:
    webhook = await house.webhook(turns={"by": "customer", "atOnce": 1})
    a1, a2, a3 = await called(house, webhook, *"aaa")
    assert await starts(house, webhook) == [a1]
    await turns.start_now(house.gateway, OWNER, a3)
    for again in (a3, a1):
        with pytest.raises(Refused, match="does not wait for its turn"):
            await turns.start_now(house.gateway, OWNER, again)
    assert await starts(house, webhook) == [a3]
    await ended(house, a1)
    assert await starts(house, webhook) == [a2]
    assert (await house.noted())[:2] == ("call started out of turn", a3)


async def test_one_of_a_burst_that_starts_now_supersedes_those_before_it(
    house: House, clock: HeldClock
) -> None:
    webhook = await house.webhook(turns={"newestAfterSeconds": 10})
    a1, a2, a3 = await called(house, webhook, *"aaa")
    await turns.start_now(house.gateway, OWNER, a2)
    assert await starts(house, webhook) == [a2]
    assert [(await delivery(house, one)).state for one in (a1, a3)] == ["superseded", "queued"]


async def test_what_a_person_starts_is_never_superseded_and_waits_behind_the_others_elsewhere(
    house: House, clock: HeldClock
) -> None:
    webhook = await house.webhook(turns={"newestAfterSeconds": 10})
    a1, a2 = await called(house, webhook, *"aa")
    await history.replay(house.gateway, OWNER, a1)
    assert await starts(house, webhook) == [a1]
    clock.now += 10
    assert await starts(house, webhook) == [a2]
    ordered = await house.webhook(turns={"by": "customer"})
    b1, b2 = await called(house, ordered, *"bb")
    await history.replay(house.gateway, OWNER, b1)
    assert await starts(house, ordered) == [b1]
    await ended(house, b1)
    assert list(house.engine.started)[-1] == f"{b1}.1"
    assert await starts(house, ordered) == [b2]
    await ended(house, b2)
    await starts(house, ordered)
    assert list(house.engine.started)[-1] == f"{b1}.2"


async def test_superseded_calls_are_replayed_where_they_are_asked_for(house: House, clock: HeldClock) -> None:
    webhook = await house.webhook(turns={"newestAfterSeconds": 10})
    await called(house, webhook, *"aaa")
    clock.now += 10
    await starts(house, webhook)
    counted = [
        (await replays.plan(house.gateway, OWNER, HistoryFilter(webhook.id, status=one))).count
        for one in (None, "superseded")
    ]
    assert counted == [1, 2]


async def test_what_waits_goes_on_under_the_present_setting(house: House, clock: HeldClock) -> None:
    webhook = await house.webhook(turns={"by": "customer"})
    calls = await called(house, webhook, *"aaaa")
    assert await starts(house, webhook) == calls[:1]
    await webhooks.change(house.gateway, OWNER, webhook.id, {"turns": {"by": None, "atOnce": 2}})
    assert await starts(house, webhook) == calls[1:2]
    await webhooks.change(house.gateway, OWNER, webhook.id, {"turns": None})
    assert await starts(house, webhook) == calls[2:]


async def test_a_hold_keeps_the_order_while_it_ends_step_by_step(house: House, clock: HeldClock) -> None:
    newest: Any = {"newestAfterSeconds": 1}
    ordered, burst, late = [await house.webhook(turns=one) for one in ({"by": "customer"}, newest, newest)]
    for webhook in (ordered, burst, late):
        await holds.hold(house.gateway, OWNER, webhook.id)
    a1, a2 = await called(house, ordered, *"aa")
    b1, _, b3 = await called(house, burst, *"bbb")
    (c1,) = await called(house, late, "c")
    for webhook in (ordered, burst, late):
        await holds._set(house.gateway, OWNER, webhook.id, False, None)
    (a3,), (c2,) = await called(house, ordered, "a"), await called(house, late, "c")
    clock.now += 60
    begun = []
    for _ in range(3):
        for webhook in (ordered, burst, late):
            begun += await starts(house, webhook)
            await house.gateway.store.deliveries.unhold(webhook.id, "queued", clock.now, 1)
    assert begun == [c2, a1]
    assert [(await delivery(house, one)).state for one in (c1, b1, b3)] == ["superseded", "queued", "queued"]
    assert await starts(house, burst) == [b3]
    for before, one in ((a1, a2), (a2, a3)):
        await ended(house, before)
        assert await starts(house, ordered) == [one]


async def test_an_admitted_call_takes_its_turn(house: House, clock: HeldClock) -> None:
    wrong: Any = {"method": "token", "token": "a wrong token of the tests"}
    webhook = await house.webhook(turns={"by": "customer"}, authentication=wrong)
    right = {"X-Api-Key": "the right token of the tests"}
    a1, a2 = [await house.recorded(webhook, b'{"customer":"a","n":%d}' % n, headers=right) for n in range(2)]
    await webhooks.change(house.gateway, OWNER, webhook.id, {"authentication": {"token": right["X-Api-Key"]}})
    admitted = await readmission.admit(house.gateway, OWNER, [a1, a2])
    assert admitted.admitted == 2
    assert await starts(house, webhook) == [a1]
    await ended(house, a1)
    assert await starts(house, webhook) == [a2]


async def test_what_cannot_be_meant_is_refused_at_its_place(house: House) -> None:
    wrong: tuple[tuple[dict[str, Any], str, str], ...] = (
        ({}, "turns.atOnce", "write atOnce, by or newestAfterSeconds"),
        ({"by": "fieldOne"}, "turns.by", "fieldOne is not mapped"),
        ({"by": "header:X-Id"}, "turns.by", "a value in the body"),
        ({"by": "items[*].id"}, "turns.by", "is not a path"),
        ({"atOnce": 0}, "turns.atOnce", "1 or more"),
        ({"longestWaitSeconds": 5}, "turns.longestWaitSeconds", "as long at least"),
        (
            {"newestAfterSeconds": 10, "longestWaitSeconds": 5},
            "turns.longestWaitSeconds",
            "as long at least",
        ),
    )
    for given, place, why in wrong:
        fields = await fields_refused(house.webhook(turns=given))
        assert list(fields) == [place] and why in fields[place]
        together = {"turns": given | {"by": "a["}, "synchronousResponse": {"enabled": True}, "path": "x"}
        assert {"turns.by", "path"} <= (await fields_refused(house.webhook(**together))).keys()


async def test_a_caller_who_waits_takes_no_turns(house: House) -> None:
    webhook = await house.webhook(turns={"atOnce": 1})
    with pytest.raises(Refused) as refused:
        await webhooks.change(house.gateway, OWNER, webhook.id, {"synchronousResponse": {"enabled": True}})
    assert refused.value.errors[0].field == "turns.atOnce"


@pytest.mark.parametrize("body", [b'{"customer":17}', b'{"customer":"17"}'])
async def test_numbers_are_known_by_their_text(house: House, clock: HeldClock, body: bytes) -> None:
    webhook = await house.webhook(turns={"by": "fieldOne"}, fieldMapping={"fieldOne": "customer"})
    first = await house.recorded(webhook, body)
    await house.recorded(webhook, b'{"customer":"17"}')
    nothing = [await house.recorded(webhook, one) for one in (b"{}", b'{"customer":null}')]
    assert await starts(house, webhook) == [first, nothing[0]]
