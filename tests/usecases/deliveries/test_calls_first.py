"""Starts leave the process to calls while these need it, and take the rest."""

from pathlib import Path

import pytest

from postern.observe.calls import call_counts
from postern.usecases.deliveries import dispatch
from postern.usecases.deliveries.dispatch import BUSY, LONGEST, LOOK, THEIRS, CallsFirst, time_used
from support.house import House


class Busy:
    """A process and its calls: rounds of starts take all of the time, calls a part of it in between."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = self.used = 100.0
        self.calls_need = 0.0
        self.pauses: list[float] = []
        monkeypatch.setattr(dispatch, "monotonic", lambda: self.now)
        monkeypatch.setattr(dispatch, "time_used", lambda: self.used)
        self.calls_first = CallsFirst(self._pause)

    async def _pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self._passes(seconds, seconds * self.calls_need)

    def _passes(self, seconds: float, used: float) -> None:
        self.now += seconds
        self.used += used

    async def round(self, seconds: float = 0.01, calls: int = 1, used: float | None = None) -> float:
        """The pause that follows it."""
        self.pauses.clear()
        self.calls_first.begin()
        self._passes(seconds, seconds if used is None else used)
        for _ in range(calls):
            call_counts.add("wh_1", "accepted", "accepted", 0.001, waited=False)
        await self.calls_first.let_calls_in()
        return sum(self.pauses)


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> Busy:
    return Busy(monkeypatch)


async def rounds_until_long(busy: Busy) -> int:
    for number in range(1, 1000):
        if await busy.round() > LOOK:
            return number
    raise AssertionError("calls were never let in")


async def test_without_calls_one_round_follows_the_other(busy: Busy) -> None:
    busy.calls_need = 1.0
    assert [await busy.round(calls=0) for _ in range(100)] == [0.0] * 100


async def test_while_calls_keep_the_process_busy_most_of_its_time_is_theirs(busy: Busy) -> None:
    busy.calls_need = 1.0
    assert await rounds_until_long(busy) < 100
    assert await busy.round(0.02) == pytest.approx(0.02 * THEIRS)


async def test_calls_that_leave_enough_time_are_only_looked_after(busy: Busy) -> None:
    busy.calls_need = BUSY * 0.9
    assert [await busy.round() for _ in range(1000)] == [LOOK] * 1000
    assert await busy.round(LOOK / THEIRS / 2) == pytest.approx(LOOK / 2)


async def test_starts_come_however_many_calls_there_are(busy: Busy) -> None:
    busy.calls_need = 1.0
    await rounds_until_long(busy)
    assert await busy.round(10.0) == LONGEST


def test_to_be_ready_and_not_at_work_is_as_good_as_work(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(dispatch, "process_time", lambda: 3.0)
    monkeypatch.setattr(dispatch, "_SCHEDULING", tmp_path / "schedstat")
    assert time_used() == 3.0  # a system that does not tell
    (tmp_path / "schedstat").write_text("7000000000 1500000000 12\n")
    assert time_used() == 4.5


async def test_a_round_of_starts_is_followed_by_calls(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    webhook = await house.webhook()
    rests: list[float] = []

    async def rest(seconds: float) -> None:
        rests.append(seconds)

    first = CallsFirst(rest)
    monkeypatch.setattr(house.dispatcher, "_calls_first", first)
    start = house.engine.start

    async def called_meanwhile(trigger: object) -> object:
        await house.call(webhook)
        return await start(trigger)  # type: ignore[arg-type]

    monkeypatch.setattr(house.gateway.engine, "start", called_meanwhile)
    await house.call(webhook)
    assert await house.dispatcher.round() == 1
    assert len(rests) == 1
    monkeypatch.setattr(house.gateway.engine, "start", start)
    assert await house.dispatcher.round() == 1
    assert len(rests) == 1
    await house.dispatcher.finish()
