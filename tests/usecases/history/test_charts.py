"""What a chart's range covers, and how what was counted is told in it."""

from typing import Any

import pytest

from postern.core.history.volume import LATENCY_BOUNDS_MS, Volume, answer_name, end_name
from postern.usecases.answers import as_plain
from postern.usecases.history import volumes
from support.house import OWNER, House

NOW = 1_784_900_000.0 // 86_400 * 86_400 + 40_000.0
"""11:06:40 of some day."""
MINUTE = int(NOW // 60)


def within(ms: float, count: int) -> list[int]:
    counts = [0] * len(LATENCY_BOUNDS_MS)
    counts[LATENCY_BOUNDS_MS.index(ms)] = count
    return counts


@pytest.fixture
def asked(house: House, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the counts are asked for, and what they answer."""
    stored: dict[str, Any] = {"buckets": {}, "calls": {}}

    async def buckets(webhook_id: str | None, since: int, until: int, step: int) -> dict[int, Volume]:
        stored["range"] = (webhook_id, since, until, step)
        found: dict[int, Volume] = stored["buckets"]
        return found

    async def calls(ids: list[str], since: int, until: int, step: int) -> Any:
        stored["range"] = (ids, since, until, step)
        return stored["calls"]

    monkeypatch.setattr(house.gateway.store.volumes, "buckets", buckets)
    monkeypatch.setattr(house.gateway.store.volumes, "calls", calls)
    house.gateway.clock = lambda: NOW
    return stored


@pytest.mark.parametrize(
    ("span", "hours", "points"), [("hour", 1, 60), ("day", 24, 97), ("week", 168, 85), ("month", 720, 91)]
)
async def test_a_range_ends_with_this_minute_and_its_points_lie_on_whole_steps(
    house: House, asked: dict[str, Any], span: str, hours: int, points: int
) -> None:
    chart = await volumes.chart(house.gateway, OWNER, "wh_1", span)
    webhook, since, until, step = asked["range"]
    assert (webhook, until, since % step) == ("wh_1", MINUTE + 1, 0)
    assert 0 <= until - hours * 60 - since < step, (
        "no less than was asked for, and no more than one point more"
    )
    assert (chart.range, chart.since, chart.until, chart.step_minutes) == (span, since * 60, until * 60, step)
    assert [point.at for point in chart.points] == [at * 60 for at in range(since, until, step)]
    assert len(chart.points) == points
    assert chart.points[-1].at <= NOW < chart.points[-1].at + step * 60


async def test_what_was_counted_is_reported_point_by_point_and_together(
    house: House, asked: dict[str, Any]
) -> None:
    early, late = Volume(), Volume()
    early.add("accepted", 98, within(5, 98))
    early.add("signature_mismatch", 2, within(1000, 2))
    late.add("duplicate", 3, within(2, 3))
    late.add("malformed_json", 40, within(2, 40))
    late.add(answer_name(200), 90, within(50, 90))
    late.add(answer_name(400), 10, within(2500, 10))
    late.add(end_name("completed"), 1, within(100, 1))
    late.add(end_name("failed"), 7, within(100, 7))
    asked["buckets"] = {MINUTE - 10: early, MINUTE: late}
    chart = await volumes.chart(house.gateway, OWNER, None, "hour")
    by_minute = {point.at: point for point in chart.points if point.calls}
    first, second = by_minute[(MINUTE - 10) * 60], by_minute[MINUTE * 60]
    assert (first.calls, first.failed_runs, second.calls, second.failed_runs) == (100, 0, 43, 7)
    assert as_plain(first.outcomes) == {
        "accepted": 98,
        "filtered": 0,
        "duplicate": 0,
        "handshake": 0,
        "rejected": 2,
    }
    # How long callers waited, and nothing else: of the first, no answer is known.
    assert as_plain(first.latency_ms) == {"count": 0, "p50": None, "p95": None, "p99": None}
    assert as_plain(second.latency_ms) == {"count": 100, "p50": 50, "p95": 2500, "p99": 2500}
    total = chart.total
    assert (total.calls, total.latency_ms) == (143, second.latency_ms)
    assert list(total.codes.items()) == [
        ("accepted", 98),
        ("malformed_json", 40),
        ("duplicate", 3),
        ("signature_mismatch", 2),
    ]
    assert as_plain(total.outcomes) == {
        "accepted": 98,
        "filtered": 0,
        "duplicate": 3,
        "handshake": 0,
        "rejected": 42,
    }
    assert list(total.answers.items()) == [("200", 90), ("400", 10)]
    assert list(total.runs.items()) == [("failed", 7), ("completed", 1)]
    assert as_plain(total.run_ms) == {"count": 8, "p50": 100, "p95": 100, "p99": 100}
    empty = chart.points[0]
    assert (empty.calls, empty.latency_ms.p50, empty.failed_runs) == (0, None, 0)
