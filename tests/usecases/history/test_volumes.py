"""Calls by outcome and latency, from the counts per minute."""

from types import SimpleNamespace
from typing import Any

import pytest

from postern.core.history.invocation import Entry, Invocation
from postern.core.problems import Refused
from postern.identity import new_id
from postern.usecases.history import volumes
from postern.usecases.operations import retention
from support.clock import HeldClock
from support.desk import ACTOR, Desk, on_both
from support.recording import kept


@pytest.fixture(autouse=True)
def without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """After each step of summing up, as long as it took: `operations/test_retention.py` tries that."""
    monkeypatch.setattr(retention, "time", SimpleNamespace(perf_counter=lambda: 0.0))


@pytest.fixture
def clock(desk: Desk) -> HeldClock:
    return HeldClock(desk.gateway, 1_800_000_000.0)


def invocation(id: str, webhook_id: str, at: float, code: str = "accepted", took_ms: float = 3) -> Invocation:
    outcome = code if code in ("accepted", "duplicate") else "rejected"
    return Invocation(
        id, webhook_id, at, outcome, code, 200, 1, "POST", b"/", b"", b"[]", b"", 0, "127.0.0.1", int(took_ms * 1000), "", "", b"[]"
    )  # fmt: skip


async def record(desk: Desk, webhook_id: str, at: float, *how: Any) -> None:
    await kept(desk.store, Entry(invocation(new_id("inv"), webhook_id, at, *how)))


@on_both
async def test_all_webhooks_together_and_each_by_itself(desk: Desk, clock: HeldClock) -> None:
    first, second = await desk.webhook("One"), await desk.webhook("Two")
    await record(desk, first, clock.now - 60)
    await record(desk, second, clock.now - 60, "malformed_json")
    assert (await volumes.chart(desk.gateway, ACTOR, None, "hour")).total.calls == 2
    days = await volumes.last_day(desk.gateway, ACTOR, [first, second])
    assert (len(days[first]), sum(days[first]), sum(days[second])) == (24, 1, 1)
    assert await volumes.last_day_of_all(desk.gateway) == {first: 1, second: 1}
    with pytest.raises(Refused, match="invalid_request"):
        await volumes.chart(desk.gateway, ACTOR, None, "century")


@on_both
async def test_what_was_summed_up_is_reported_as_what_was_counted(desk: Desk, clock: HeldClock) -> None:
    first, second = await desk.webhook("One"), await desk.webhook("Two")
    clock.now -= clock.now % 86_400 - 40_000
    for number, ago in enumerate((10, 200, 400, 1_300, 3_000, 3_700, 20_000, 90_000, 500_000, 2_500_000)):
        code = ("accepted", "duplicate", "signature_mismatch")[number % 3]
        for webhook in (first, second)[: 1 + number % 2]:
            await record(desk, webhook, clock.now - ago, code, number)

    async def charted() -> list[Any]:
        charts = [
            (span, one, await volumes.chart(desk.gateway, ACTOR, one, span))
            for span in volumes.RANGES
            for one in (first, second, None)
        ]
        return [*charts, await volumes.last_day(desk.gateway, ACTOR, [first, second])]

    counted = await charted()
    await retention.roll_up(desk.gateway)
    assert not await desk.store.volumes.roll_up(clock.now)
    assert await charted() == counted
    clock.now += 1_000
    await record(desk, second, clock.now - 700)
    after = await charted()
    await retention.roll_up(desk.gateway)
    assert await charted() == after


@on_both
async def test_what_is_old_goes_from_the_sums_too(desk: Desk, clock: HeldClock) -> None:
    webhook = await desk.webhook("Old")
    await record(desk, webhook, clock.now - 86_400)
    await record(desk, webhook, clock.now - 7_200)
    await retention.roll_up(desk.gateway)
    for one in (webhook, ""):
        await desk.store.retention.forget_volumes(one, clock.now - 50_000)
    assert (await volumes.chart(desk.gateway, ACTOR, webhook, "month")).total.calls == 1
    assert (await volumes.chart(desk.gateway, ACTOR, None, "month")).total.calls == 1


async def test_what_is_counted_late_is_seen_although_its_minute_is_summed_up(
    desk: Desk, clock: HeldClock
) -> None:
    webhook = await desk.webhook("Late")
    await record(desk, webhook, clock.now - 7200)
    await retention.roll_up(desk.gateway)
    counted = {(webhook, int(clock.now // 60) - 60, "signature_mismatch"): 3}
    await desk.store.volumes.count(counted, clock.now)
    assert (await volumes.chart(desk.gateway, ACTOR, webhook, "day")).total.calls == 4
