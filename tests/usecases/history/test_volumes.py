"""Calls by outcome and latency, from the counts per minute: on both stores."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from postern.core.history.invocation import Entry, Invocation
from postern.core.problems import Refused
from postern.identity import new_id
from postern.usecases.history import volumes
from postern.usecases.operations import retention
from postern.usecases.runtime.gateway import Gateway
from postern.usecases.shapes import validated
from postern.usecases.webhooks import webhooks
from postern.usecases.webhooks.requests import WebhookRequest
from support.recording import kept
from support.rooms import ADMIN, Clock, gateway_on


@pytest.fixture(autouse=True)
def without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """After each step of summing up, as long as it took: `operations/test_retention.py` tries that."""
    monkeypatch.setattr(retention, "time", SimpleNamespace(perf_counter=lambda: 0.0))


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path | str]:
    yield tmp_path if request.param == "sqlite" else request.getfixturevalue("migrated_url")


@pytest.fixture
async def room(database: Path | str) -> AsyncIterator[tuple[Gateway, Clock]]:
    async with gateway_on(database) as made:
        yield made


def invocation(id: str, webhook_id: str, at: float, code: str = "accepted", took_ms: float = 3) -> Invocation:
    outcome = code if code in ("accepted", "duplicate") else "rejected"
    return Invocation(
        id, webhook_id, at, outcome, code, 200, 1, "POST", b"/", b"", b"[]", b"", 0, "127.0.0.1", int(took_ms * 1000), "", "", b"[]"
    )  # fmt: skip


async def record(gateway: Gateway, webhook_id: str, at: float, *how: Any) -> None:
    await kept(gateway.store, Entry(invocation(new_id("inv"), webhook_id, at, *how)))


async def a_webhook(gateway: Gateway, name: str) -> str:
    made: dict[str, Any] = await webhooks.create(
        gateway, ADMIN, validated(WebhookRequest, {"name": name, "authentication": {"method": "none"}})
    )
    return str(made.id)


async def test_all_webhooks_together_and_each_by_itself(room: tuple[Gateway, Clock]) -> None:
    gateway, clock = room
    first, second = await a_webhook(gateway, "One"), await a_webhook(gateway, "Two")
    await record(gateway, first, clock.now - 60)
    await record(gateway, second, clock.now - 60, "malformed_json")
    assert (await volumes.chart(gateway, ADMIN, None, "hour")).total.calls == 2
    days = await volumes.last_day(gateway, ADMIN, [first, second])
    assert (len(days[first]), sum(days[first]), sum(days[second])) == (24, 1, 1)
    assert await volumes.last_day_of_all(gateway) == {first: 1, second: 1}


async def test_what_was_summed_up_is_reported_as_what_was_counted(room: tuple[Gateway, Clock]) -> None:
    gateway, clock = room
    first, second = await a_webhook(gateway, "One"), await a_webhook(gateway, "Two")
    clock.now -= clock.now % 86_400 - 40_000
    for number, ago in enumerate((10, 200, 400, 1_300, 3_000, 3_700, 20_000, 90_000, 500_000, 2_500_000)):
        code = ("accepted", "duplicate", "signature_mismatch")[number % 3]
        for webhook in (first, second)[: 1 + number % 2]:
            await record(gateway, webhook, clock.now - ago, code, number)

    async def charted() -> list[Any]:
        charts = [
            (span, one, await volumes.chart(gateway, ADMIN, one, span))
            for span in volumes.RANGES
            for one in (first, second, None)
        ]
        return [*charts, await volumes.last_day(gateway, ADMIN, [first, second])]

    counted = await charted()
    await retention.roll_up(gateway)
    assert not await gateway.store.volumes.roll_up(clock.now)
    assert await charted() == counted
    clock.now += 1_000
    await record(gateway, second, clock.now - 700)
    after = await charted()
    await retention.roll_up(gateway)
    assert await charted() == after


async def test_what_is_old_goes_from_the_sums_too(room: tuple[Gateway, Clock]) -> None:
    gateway, clock = room
    webhook = await a_webhook(gateway, "Old")
    await record(gateway, webhook, clock.now - 86_400)
    await record(gateway, webhook, clock.now - 7_200)
    await retention.roll_up(gateway)
    for one in (webhook, ""):
        await gateway.store.retention.forget_volumes(one, clock.now - 50_000)
    assert (await volumes.chart(gateway, ADMIN, webhook, "month")).total.calls == 1
    assert (await volumes.chart(gateway, ADMIN, None, "month")).total.calls == 1


async def test_what_is_counted_late_is_seen_although_its_minute_is_summed_up(
    room: tuple[Gateway, Clock],
) -> None:
    gateway, clock = room
    webhook = await a_webhook(gateway, "Late")
    await record(gateway, webhook, clock.now - 7200)
    await retention.roll_up(gateway)
    counted = {(webhook, int(clock.now // 60) - 60, "signature_mismatch"): 3}
    await gateway.store.volumes.count(counted, clock.now)
    assert (await volumes.chart(gateway, ADMIN, webhook, "day")).total.calls == 4


async def test_a_range_that_is_none_is_refused(room: tuple[Gateway, Clock]) -> None:
    with pytest.raises(Refused, match="invalid_request"):
        await volumes.chart(room[0], ADMIN, None, "century")
