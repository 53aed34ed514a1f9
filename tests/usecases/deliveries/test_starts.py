"""What is written down of a start, whichever way it went, and when it is tried again."""

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs

from postern.core.deliveries import delivery as core
from postern.core.deliveries.delivery import (
    FIRST_WAIT,
    GIVE_UP_AFTER,
    LONGEST_WAIT,
    EngineRejected,
    EngineUnavailable,
    Started,
    Trigger,
    delivery_key,
)
from postern.core.history.invocation import StoreUnavailable
from postern.observe.metrics import REGISTRY, Numbers
from postern.usecases.deliveries import dispatch, starting
from postern.usecases.deliveries.dispatch import BATCH, Dispatcher
from postern.usecases.deliveries.starting import ONE_ALONE
from postern.usecases.history import history
from postern.usecases.history.views.calls import Delivery
from support.clock import HeldClock
from support.house import OWNER, House
from support.waiting import PATIENCE


@pytest.fixture(autouse=True)
def without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "LONGEST_PAUSE", 0.001)
    monkeypatch.setattr(starting, "SETTLE_EVERY", 0.0)


def going(house: House, outcome: Exception | Started) -> None:
    async def start(trigger: Trigger) -> Started:
        if isinstance(outcome, Started):
            return outcome
        raise outcome

    house.engine.start = start  # type: ignore[method-assign]


async def round_of(house: House) -> Delivery:
    """One delivery is due, and one round is done. What its only call's page says of its start."""
    assert await house.dispatcher.round() == 1
    await house.dispatcher.finish()
    (call,) = await house.history()
    return (await history.show(house.gateway, OWNER, call.id)).deliveries[-1]


def counted(house: House) -> dict[str, float]:
    kinds = ("started", "unavailable", "rejected")
    return {kind: Numbers.engine_starts.labels(house.engine.name, kind)._value.get() for kind in kinds}


def moved(house: House, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Of which calls those who watch are told."""
    touched: list[str] = []
    monkeypatch.setattr(house.gateway.runtime.live, "touch", touched.append)
    return touched


@pytest.mark.parametrize(
    ("outcome", "kind", "state"),
    [
        (Started(2, ("one", "two")), "started", "started"),
        (EngineUnavailable("away"), "unavailable", "queued"),
        (EngineRejected("not like this"), "rejected", "failed"),
    ],
)
async def test_each_outcome_is_written_down_counted_and_announced_to_those_who_watch(
    house: House, monkeypatch: pytest.MonkeyPatch, outcome: Exception | Started, kind: str, state: str
) -> None:
    call = await house.recorded(await house.webhook())
    touched, before = moved(house, monkeypatch), counted(house)
    timed = Numbers.engine_start_seconds._sum.get()
    going(house, outcome)
    delivery = await round_of(house)
    error, runs = (None, 2) if isinstance(outcome, Started) else (str(outcome), None)
    assert (delivery.state, delivery.attempts, delivery.error, delivery.runs) == (state, 1, error, runs)
    assert [one.outcome for one in delivery.log] == [{"rejected": "failed"}.get(kind, kind)]
    assert counted(house) == {**before, kind: before[kind] + 1.0}
    assert (Numbers.engine_start_seconds._sum.get() > timed) == (kind == "started")
    assert touched == [call]


async def test_a_start_that_failed_is_tried_again_later_each_time_and_with_the_same_key(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(core.random, "uniform", lambda low, high: high)
    clock = HeldClock(house.gateway)
    await house.call(await house.webhook())
    house.engine.down = True
    waits = []
    for attempts in range(1, 5):
        delivery = await round_of(house)
        assert (delivery.attempts, delivery.next_attempt_at is not None) == (attempts, True)
        waits.append(round((delivery.next_attempt_at or 0.0) - house.gateway.clock(), 3))
        assert await house.dispatcher.round() == 0, "it is not due yet"
        clock.now += waits[-1]
    assert waits == [1.0, 2.0, 4.0, 8.0]
    house.engine.down = False
    assert (await round_of(house)).state == "started"
    assert len(house.engine.started) == 1


async def test_an_engine_that_says_when_is_not_asked_sooner(house: House) -> None:
    HeldClock(house.gateway)
    await house.call(await house.webhook())
    going(house, EngineUnavailable("busy", retry_after=100.0))
    delivery = await round_of(house)
    assert round((delivery.next_attempt_at or 0.0) - house.gateway.clock()) == 100
    away = house.gateway.runtime.engine.away
    assert away is not None and round(away.not_before - away.since) == 100


async def test_after_three_days_it_is_given_up_and_not_before(house: House) -> None:
    clock = HeldClock(house.gateway)
    counted = {"engine": house.engine.name, "outcome": "given_up"}
    before = REGISTRY.get_sample_value("postern_engine_starts_total", counted) or 0
    await house.call(await house.webhook())
    house.engine.down = True
    clock.now += GIVE_UP_AFTER
    assert (await round_of(house)).state == "queued"
    clock.now += LONGEST_WAIT
    assert (await round_of(house)).state == "queued", "a clock that was set may be wrong"
    house.gateway.runtime.clock_is_trusted = True
    clock.now += LONGEST_WAIT
    delivery = await round_of(house)
    assert (delivery.state, delivery.next_attempt_at) == ("failed", None)
    assert delivery.error == "given up after 3 days: switched off by the test"
    assert REGISTRY.get_sample_value("postern_engine_starts_total", counted) == before + 1


async def test_an_engine_that_does_not_answer_is_one_that_is_away(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(starting, "START_TIMEOUT", 0.01)
    await house.call(await house.webhook())

    async def start(trigger: Trigger) -> Started:
        await asyncio.Event().wait()
        raise AssertionError

    house.engine.start = start  # type: ignore[method-assign]
    delivery = await round_of(house)
    assert (delivery.state, delivery.error) == ("queued", "the engine did not answer within 0.01 s")


def test_a_start_ends_while_its_lease_lasts() -> None:
    """Or another process would begin it beside this one, and a caller who waits would be asked for twice."""
    assert starting.START_TIMEOUT + dispatch.LONGEST_BATCH < dispatch.LEASE


async def test_a_defect_of_an_engine_is_reported_as_one_and_the_delivery_comes_back(house: House) -> None:
    clock = HeldClock(house.gateway)
    await house.call(await house.webhook())
    going(house, KeyError("planted"))
    with capture_logs() as lines:
        delivery = await round_of(house)
    assert [one["event"] for one in lines] == ["an engine raised an unexpected error"]
    assert (delivery.state, delivery.error, delivery.attempts) == ("queued", "internal: KeyError", 1)
    going(house, Started(1))
    clock.now += FIRST_WAIT
    assert (await round_of(house)).state == "started"


async def test_what_an_engine_rejects_says_nothing_of_the_others(house: House) -> None:
    webhook = await house.webhook()
    for number in range(3):
        await house.call(webhook, b'{"n":%d}' % number)
    going(house, EngineRejected("not like this"))
    assert await house.dispatcher.round() == 3
    await house.call(webhook)
    await house.call(webhook)
    assert await house.dispatcher.round() == 2


async def test_starts_that_one_workflow_does_not_take_hold_up_no_others(house: House) -> None:
    clock = HeldClock(house.gateway)
    failing, well = await house.webhook(), await house.webhook()
    for number in range(BATCH + 10):
        await house.call(failing, b'{"n":%d}' % number)
    call = await house.recorded(well)

    async def start(trigger: Trigger) -> Started:
        if trigger.webhook_id == failing.id:
            raise EngineUnavailable("the engine answered 500", only_this=True)
        return Started(1)

    house.engine.start = start  # type: ignore[method-assign]
    assert await house.dispatcher.round() == BATCH
    assert await house.dispatcher.round() == 11
    await house.dispatcher.finish()
    (delivery,) = (await history.show(house.gateway, OWNER, call)).deliveries
    assert delivery.state == "started"
    assert house.gateway.runtime.engine.away is None
    clock.now += FIRST_WAIT
    assert await house.dispatcher.round() == BATCH, "these are tried again, each at its own time"
    assert house.gateway.runtime.engine.away is None, "it has taken the other one just now"
    house.gateway.runtime.engine.took_at -= ONE_ALONE + 1
    assert await house.dispatcher.round() == 10
    assert house.gateway.runtime.engine.away is not None, "nobody has taken a start for long"


async def test_a_call_whose_body_is_gone_cannot_be_started(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = await house.recorded(await house.webhook())
    touched, before = moved(house, monkeypatch), counted(house)

    async def contents(ids: list[str]) -> dict[str, Any]:
        return {}

    monkeypatch.setattr(house.gateway.store.history, "contents", contents)
    delivery = await round_of(house)
    assert (delivery.state, delivery.error) == (
        "failed",
        "the call's body is no longer kept, or cannot be read",
    )
    assert (touched, counted(house)) == ([call], before)


@pytest.mark.parametrize(
    ("asked_after", "runs", "asked"), [(7.0, 1, True), (7.0, 0, False), (None, 1, False)]
)
async def test_an_engine_that_can_tell_ends_is_asked_where_something_runs(
    house: House, asked_after: float | None, runs: int, asked: bool
) -> None:
    HeldClock(house.gateway)
    call = await house.recorded(await house.webhook())
    house.engine.asked_after = asked_after
    going(house, Started(runs))
    await round_of(house)
    stored = await house.gateway.store.deliveries.get(f"{call}.1")
    assert stored is not None
    assert (stored.ask_at and round(stored.ask_at - house.gateway.clock(), 3)) == (7.0 if asked else None)


@pytest.mark.parametrize(("at", "since"), [(-3.0, -3.0), (None, 0.0), (5.0, 0.0)])
async def test_a_run_counts_from_when_it_began_and_not_from_when_the_engine_said_so(
    house: House, at: float | None, since: float
) -> None:
    now = HeldClock(house.gateway).now
    await house.call(await house.webhook())
    going(house, Started(1, at=None if at is None else now + at))
    started_at = (await round_of(house)).started_at
    assert started_at is not None
    assert round(started_at - now, 3) == since, "no run begins later than its engine says so"


class Away:
    """The store is away for the first so many settlements."""

    def __init__(self, house: House, monkeypatch: pytest.MonkeyPatch, times: int) -> None:
        self.left, self.unsettled = times, []
        self._house, self._started = house, house.gateway.store.deliveries.started
        monkeypatch.setattr(house.gateway.store.deliveries, "started", self.started)

    async def started(self, *given: Any) -> None:
        self.unsettled.append(dict(self._house.gateway.runtime.unsettled))
        if self.left:
            self.left -= 1
            raise StoreUnavailable("away")
        await self._started(*given)


async def test_what_cannot_be_written_down_for_long_is_left_to_its_lease(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = HeldClock(house.gateway)
    await house.call(await house.webhook())
    monkeypatch.setattr(starting, "SETTLE_WITHIN", -1.0)
    away = Away(house, monkeypatch, 1)
    assert (await round_of(house)).state == "queued"
    assert (len(away.unsettled), house.gateway.runtime.unsettled) == (1, {})
    clock.now += dispatch.LEASE - 1
    assert await Dispatcher(house.gateway).round() == 0, "its lease lasts"
    clock.now += 1
    assert (await round_of(house)).state == "started"
    assert list(house.engine.times.values()) == [2], "the engine takes the same key once"


async def test_a_start_that_outlasts_its_caller_is_written_down_and_its_end_not_waited_for(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    webhook = await house.webhook(synchronousResponse={"enabled": True})
    house.lets_callers_wait(webhook)
    answer_of_engine = asyncio.Event()
    start = house.engine.start

    async def slow(trigger: Trigger) -> Started:
        await answer_of_engine.wait()
        return await start(trigger)

    monkeypatch.setattr(house.engine, "start", slow)
    heard = await house.call(webhook, b'{"n": 1}')
    assert heard.json["code"] == "response_timeout"
    answer_of_engine.set()
    await house.gateway.runtime.finish(PATIENCE)
    row = await house.gateway.store.deliveries.get(delivery_key(heard.json["invocationId"], 1))
    assert row is not None and (row.state, row.runs) == ("started", 1)
    assert not house.gateway.runtime._background


async def test_what_waits_to_be_started_is_measured_and_how_long_it_has(house: House) -> None:
    def measured() -> tuple[float | None, float]:
        oldest = REGISTRY.get_sample_value("postern_oldest_due_seconds") or 0
        return REGISTRY.get_sample_value("postern_deliveries_waiting"), round(oldest)

    clock, webhook = HeldClock(house.gateway), await house.webhook()
    for _ in range(2):
        await house.call(webhook)
    clock.now += 50
    await dispatch.measure(house.gateway)
    assert measured() == (2, 50)
    await house.deliver()
    await dispatch.measure(house.gateway)
    assert measured() == (0, 0)


# --- the clock is set back, or forward: nobody waits for as long as the step -------------------------------------------


HOUR = 3600.0


async def test_a_clock_set_back_rejects_no_call(house: House) -> None:
    clock = HeldClock(house.gateway)
    webhook = await house.webhook(rateLimit={"callsPerSecond": 1, "burst": 2})
    assert (await house.call(webhook)).status == 200
    clock.now -= HOUR
    assert (await house.call(webhook)).status == 200


async def test_a_workflows_answer_counts_though_the_clock_was_set_forward(house: House) -> None:
    clock = HeldClock(house.gateway)
    webhook = await house.webhook(synchronousResponse={"enabled": True, "timeoutSeconds": 20})
    call = asyncio.create_task(house.call(webhook))
    trigger = await house.begun()
    clock.now += HOUR
    await house.answer(trigger)
    assert (await call).status == 201


@pytest.mark.parametrize(("before", "tried", "hours"), [(0, 0, 0.5), (0, 1, 0.5), (1, 1, 2), (1, 0, 2)])
async def test_what_waits_for_a_retry_does_not_wait_for_the_step_too(
    house: House, before: int, tried: int, hours: float
) -> None:
    clock = HeldClock(house.gateway)
    assert (await house.call(await house.webhook())).status == 200
    house.engine.down = True
    for _ in range(before):
        await house.dispatcher.round()
    clock.now += hours * HOUR
    if tried:
        await house.dispatcher.round()
    else:  # claimed by a process that is gone
        await house.gateway.store.deliveries.claim(house.gateway.clock(), dispatch.LEASE, 1)
    clock.now -= hours * HOUR
    assert [await dispatch.catch_up(house.gateway) for _ in range(2)] == [1, 0]
    house.engine.down = False
    clock.now += dispatch.LEASE
    await house.deliver()
    assert len(house.engine.started) == 1


async def test_what_waits_as_long_as_it_should_is_left_alone(house: House) -> None:
    clock = HeldClock(house.gateway)
    assert (await house.call(await house.webhook())).status == 200
    house.engine.down = True
    for _ in range(14):  # until the waits are as long as they get
        await house.dispatcher.round()
        clock.now += LONGEST_WAIT
    clock.now -= LONGEST_WAIT
    assert await dispatch.catch_up(house.gateway) == 0
