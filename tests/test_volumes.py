"""Calls by outcome and latency, from the counts per minute: on both stores."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from beds.recording import kept
from beds.rooms import ADMIN, Clock, gateway_on
from postern.core.invocation import Entry, Invocation
from postern.core.problems import Refused
from postern.core.volume import LATENCY_BOUNDS_MS, Volume
from postern.identity import new_id
from postern.usecases import volumes, webhooks
from postern.usecases.configuration import WebhookRequest, validated
from postern.usecases.gateway import Gateway

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path | str]:
    yield tmp_path if request.param == "sqlite" else request.getfixturevalue("postgres_url")


@pytest.fixture
async def room(database: Path | str, anyio_backend: str) -> AsyncIterator[tuple[Gateway, Clock]]:
    async with gateway_on(database) as made:
        yield made


async def record(gateway: Gateway, webhook_id: str, at: float, code: str = "accepted", took_ms: float = 3) -> None:
    outcome = code if code in ("accepted", "duplicate") else "rejected"
    invocation = Invocation(
        new_id("inv"), webhook_id, at, outcome, code, 200, 1, "POST", b"/", b"", b"[]", b"", 0, "127.0.0.1", int(took_ms * 1000), "", "", b"[]"
    )  # fmt: skip
    await kept(gateway.store, Entry(invocation))


async def a_webhook(gateway: Gateway, name: str) -> str:
    made: dict[str, Any] = await webhooks.create(
        gateway, ADMIN, validated(WebhookRequest, {"name": name, "authentication": {"method": "none"}})
    )
    return str(made["id"])


async def test_points_cover_the_range_and_add_up_to_the_total(room: tuple[Gateway, Clock]) -> None:
    gateway, clock = room
    webhook = await a_webhook(gateway, "Counted")
    for ago, code in ((30, "accepted"), (3000, "duplicate"), (7200, "signature_mismatch"), (90_000, "accepted")):
        await record(gateway, webhook, clock.now - ago, code)
    chart = await volumes.chart(gateway, ADMIN, webhook, "day")
    assert chart["total"]["calls"] == 3
    assert chart["total"]["outcomes"] == {"accepted": 1, "duplicate": 1, "handshake": 0, "rejected": 1}
    assert chart["total"]["codes"] == {"accepted": 1, "duplicate": 1, "signature_mismatch": 1}
    assert sum(point["calls"] for point in chart["points"]) == 3
    assert 96 <= len(chart["points"]) <= 98


async def test_all_webhooks_together_and_each_by_itself(room: tuple[Gateway, Clock]) -> None:
    gateway, clock = room
    first, second = await a_webhook(gateway, "One"), await a_webhook(gateway, "Two")
    await record(gateway, first, clock.now - 60)
    await record(gateway, second, clock.now - 60, "credential_missing")
    assert (await volumes.chart(gateway, ADMIN, None, "hour"))["total"]["calls"] == 2
    days = await volumes.last_day(gateway, ADMIN, [first, second])
    assert len(days[first]["hours"]) == 24 and days[first]["calls"] == 1
    assert (days[first]["failing"], days[second]["failing"]) == (False, True)


async def test_what_comes_in_later_is_counted_too(room: tuple[Gateway, Clock]) -> None:
    """The past is remembered, the present is not."""
    gateway, clock = room
    webhook = await a_webhook(gateway, "Later")
    await record(gateway, webhook, clock.now - 1200)
    assert (await volumes.chart(gateway, ADMIN, webhook, "hour"))["total"]["calls"] == 1
    await record(gateway, webhook, clock.now - 60)
    assert (await volumes.chart(gateway, ADMIN, webhook, "hour"))["total"]["calls"] == 2
    clock.now += 1800
    await record(gateway, webhook, clock.now)
    assert (await volumes.chart(gateway, ADMIN, webhook, "hour"))["total"]["calls"] == 3
    clock.now += 1800
    assert (await volumes.chart(gateway, ADMIN, webhook, "hour"))["total"]["calls"] == 1


async def test_a_range_that_is_none_is_refused(room: tuple[Gateway, Clock]) -> None:
    with pytest.raises(Refused, match="invalid_request"):
        await volumes.chart(room[0], ADMIN, None, "century")


def test_percentiles_lie_within_the_bucket_that_holds_them() -> None:
    volume = Volume()
    within = [0] * len(LATENCY_BOUNDS_MS)
    within[LATENCY_BOUNDS_MS.index(5)], within[LATENCY_BOUNDS_MS.index(1000)] = 98, 2
    volume.add("accepted", 100, within)
    middle, worst = volume.percentile(0.5), volume.percentile(0.99)
    assert middle is not None and worst is not None
    assert 2 < middle <= 5 and 250 < worst <= 1000


def test_what_is_slower_than_every_bound_is_said_as_the_last_bound() -> None:
    volume = Volume()
    volume.add("accepted", 1, [0] * len(LATENCY_BOUNDS_MS))
    assert volume.percentile(0.5) == LATENCY_BOUNDS_MS[-1]
    assert Volume().percentile(0.5) is None
