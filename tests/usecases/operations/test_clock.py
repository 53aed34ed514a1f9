"""A clock that was wrong and is set right: nothing is blind for as long as it was ahead."""

from dataclasses import dataclass

import pytest

from postern import identity
from postern.core.history.invocation import HistoryFilter
from postern.usecases.alarms import incidents
from postern.usecases.alarms.judging import AlarmLoop
from postern.usecases.deliveries import replays
from postern.usecases.history import findable, history, volumes
from postern.usecases.history.endings import EndingsLoop
from postern.usecases.operations import clock as watching
from postern.usecases.operations import readiness, retention
from postern.usecases.operations.clock import ClockWatch
from postern.usecases.webhooks import webhooks
from support.house import OWNER, House
from support.simulated import EndingEngine, OneClock


@dataclass
class Place:
    house: House
    clock: OneClock
    watch: ClockWatch

    async def is_set(self, seconds: float) -> None:
        self.clock.now += seconds
        await self.watch.round()


@pytest.fixture
async def place(house: House, monkeypatch: pytest.MonkeyPatch) -> Place:
    clock = OneClock()
    monkeypatch.setattr(identity, "clock", clock)
    monkeypatch.setattr(watching, "steady", lambda: clock.steady)
    house.gateway.clock = clock
    house.gateway.engine = house.engine = EndingEngine(clock)
    place = Place(house, clock, ClockWatch(house.gateway))
    await place.watch.round()
    return place


HOURS = [2.0, 40 * 24.0]


@pytest.mark.parametrize("hours", HOURS)
async def test_calls_of_a_time_that_is_yet_to_come_are_listed_and_found_as_received_before(
    place: Place, hours: float
) -> None:
    house = place.house
    webhook = await house.webhook(fieldMapping={"fieldOne": "n"})
    before = [await house.recorded(webhook, b'{"n": "before"}') for _ in range(2)]
    await place.is_set(hours * 3600)
    ahead = [await house.recorded(webhook, b'{"n": "ahead"}') for _ in range(3)]
    await place.is_set(-hours * 3600)
    place.clock.passes(30.0)
    after = [await house.recorded(webhook, b'{"n": "after"}') for _ in range(2)]
    in_order = [*after[::-1], *ahead[::-1], *before[::-1]]
    assert await house.found() == in_order
    for size in (1, 2, 3, 5):
        assert await _pages(house, size) == in_order
    now = f"{place.clock():.3f}"
    assert await house.found(until=now) == in_order
    assert await house.found(until=f"{place.clock() - 15:.3f}") == in_order[2:], "they came before that"
    assert await house.found(since=f"{place.clock() - 15:.3f}") == after[::-1]
    assert await house.found(since=f"{place.clock() - 300:.3f}") == in_order
    place.clock.passes(10.0)
    while await findable.step(house.gateway):
        pass
    assert await house.found(value="ahead") == ahead[::-1]
    assert await house.found(value="after") == after[::-1]
    plan = await replays.plan(house.gateway, OWNER, HistoryFilter())
    await replays.begin(house.gateway, OWNER, plan.id)
    await replays.Replayer(house.gateway).round()
    begun = await replays.show(house.gateway, OWNER, plan.id)
    assert (begun.count, begun.done, begun.skipped) == (7, 7, 0)
    # Their time comes, and they are where it says.
    place.clock.passes(hours * 3600 + 60)
    assert await house.found() == [*ahead[::-1], *after[::-1], *before[::-1]]


async def _pages(house: House, size: int) -> list[str]:
    found: list[str] = []
    cursor = None
    while True:
        page = await history.listing(house.gateway, OWNER, HistoryFilter(), size, cursor)
        found += [one.id for one in page.items]
        if (cursor := page.next_cursor) is None:
            return found


async def test_calls_are_counted_and_told_at_once_after_a_step_back(place: Place) -> None:
    house = place.house
    webhook, store = await house.webhook(), house.gateway.store.incidents
    alarms = AlarmLoop(house.gateway)
    await place.is_set(7200)
    for _ in range(5):
        await house.call(webhook)
        await house.call(webhook, b"{broken")
    await alarms.round()
    (first,) = await store.open()
    await store.close(first.id, place.clock(), "by the test")  # which hides nothing that comes next
    place.clock.passes(1800)
    await retention.roll_up(house.gateway)
    await place.is_set(-7200)
    place.clock.passes(90)
    for _ in range(12):
        await house.call(webhook, b"{broken")
    for span in ("hour", "day", "week"):
        chart = await volumes.chart(house.gateway, OWNER, webhook.id, span)
        assert (chart.total.calls, chart.total.outcomes.accepted) == (22, 5), span
    place.clock.passes(20)
    await alarms.round()
    assert [(one.kind, one.id != first.id) for one in await store.open()] == [("rejected", True)]
    # Minutes that were summed up are summed up once more when they come.
    place.clock.passes(3 * 3600)
    await house.call(webhook)
    await retention.roll_up(house.gateway)
    day = await volumes.chart(house.gateway, OWNER, webhook.id, "day")
    assert day.total.calls == 23


async def test_a_webhook_that_was_changed_in_a_wrong_time_is_watched_all_the_same(place: Place) -> None:
    house, alarms = place.house, AlarmLoop(place.house.gateway)
    rhythm = {"rows": ["Mon-Sun 0-24: 30"], "timeZone": "UTC"}
    webhook = await house.webhook(alarms={"rhythm": rhythm})

    async def passes(minutes: int) -> list[str]:
        for _ in range(minutes):
            place.clock.passes(60)
            await alarms.round()
        return sorted(one.closed_because for one in (await incidents.listing(house.gateway, OWNER)).items)

    await place.is_set(7200)
    await webhooks.change(house.gateway, OWNER, webhook.id, {"name": "Leads"})
    assert await passes(33) == [""]
    await place.is_set(-7200)
    assert await passes(1) == [""]
    await house.gateway.runtime.directory.refresh()
    assert await passes(1) == [""]
    await house.call(webhook)
    assert await passes(1) == ["calls come again"]
    assert await passes(48) == ["", "calls come again"]
    await webhooks.change(house.gateway, OWNER, webhook.id, {"name": "Orders"})
    assert await passes(1) == ["calls come again", "its settings were changed"]


async def test_the_engine_is_asked_about_runs_that_were_to_be_asked_about_later(place: Place) -> None:
    house = place.house
    webhook = await house.webhook()
    await place.is_set(7200)
    call = await house.recorded(webhook)
    await house.deliver()
    await place.is_set(-7200)
    place.clock.passes(5)
    endings = EndingsLoop(house.gateway)
    await endings.ask()
    await endings.write()
    assert (await house.story(call)).deliveries[0].state == "completed"


async def test_it_is_said_for_a_while_also_after_a_restart(place: Place) -> None:
    house = place.house
    webhook = await house.webhook()
    await place.is_set(7200)
    assert not house.gateway.runtime.clock_set_back
    await house.call(webhook)
    await place.is_set(-30)
    assert not house.gateway.runtime.clock_set_back, "that is no news"
    place.clock.now -= 7170
    place.watch = ClockWatch(house.gateway)  # the process that saw the wrong clock is gone
    await place.watch.round()
    await readiness._look(house.gateway)
    assert [one.kind for one in house.gateway.runtime.troubles] == ["clock set back"]
    assert (
        "the clock was set back by 2:00:00 or more" in (await readiness.readiness(house.gateway)).store.detail
    )
    await AlarmLoop(house.gateway).round()
    (incident,) = await house.gateway.store.incidents.open()
    assert (incident.kind, list(incident.reasons)) == ("gateway", ["clock set back"])
    place.clock.passes(watching.SAID_FOR + 1)
    await place.watch.round()
    await readiness._look(house.gateway)
    assert house.gateway.runtime.troubles == []


@pytest.mark.parametrize("hours", [-1, 0, 1])
async def test_a_call_that_is_given_up_at_its_turn_is_told_once_also_if_nobody_judged_for_long(
    place: Place, hours: int
) -> None:
    house, alarms = place.house, AlarmLoop(place.house.gateway)
    webhook = await house.webhook(turns={"by": "customer"})
    await alarms.round()
    house.engine.refuses = "it is not what it should be"
    given_up = await house.recorded(webhook, b'{"customer": "a"}')
    await house.deliver()
    house.engine.refuses = ""
    await place.is_set(hours * 3600)
    place.clock.passes(1200)
    for closed_because in ("", "each of its calls has gone through"):
        for _ in range(3):
            place.clock.passes(20)
            await alarms.round()
        told = (await incidents.listing(house.gateway, OWNER)).items
        assert [one.closed_because for one in told] == [closed_because]
        await history.replay(house.gateway, OWNER, given_up)
        await house.deliver()


async def test_what_is_seldom_looked_at_waits_for_no_time_of_a_wrong_clock(place: Place) -> None:
    alarms, store = AlarmLoop(place.house.gateway), place.house.gateway.store
    for hours in (0, 40 * 24, -40 * 24):
        await place.is_set(hours * 3600)
        await alarms.round()
    store.room = lambda: (2**30, 2**40)  # type: ignore[method-assign]
    for _ in range(2):
        place.clock.passes(3600)
        await alarms.round()
    assert [list(one.reasons) for one in await store.incidents.open()] == [["disk"]]
