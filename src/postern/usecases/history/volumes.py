"""What charts show: calls by outcome and how long answering took, over a bounded range of time."""

from dataclasses import dataclass
from typing import Any

from postern.core.access.accounts import Actor
from postern.core.history.volume import OUTCOMES, Volume, outcomes
from postern.core.problems import FieldError, Refused
from postern.usecases.present import iso
from postern.usecases.runtime.gateway import Gateway, require


@dataclass(frozen=True, slots=True)
class Range:
    title: str
    minutes: int
    step: int
    """Minutes that one point stands for: every range has about as many points as a chart can show."""


RANGES = {
    "hour": Range("Last hour", 60, 1),
    "day": Range("Last 24 hours", 24 * 60, 15),
    "week": Range("Last 7 days", 7 * 24 * 60, 120),
    "month": Range("Last 30 days", 30 * 24 * 60, 480),
}
SPARKLINE_STEP = 60


async def chart(
    gateway: Gateway, actor: Actor, webhook_id: str | None = None, span: str = "day"
) -> dict[str, Any]:
    """One webhook's calls, or all webhooks', point by point, with the totals of the range."""
    require(actor, "read")
    if span not in RANGES:
        raise Refused("invalid_request", errors=[FieldError("range", f"choose one of: {', '.join(RANGES)}")])
    chosen = RANGES[span]
    until = int(gateway.clock() // 60) + 1
    since = until - chosen.minutes
    since -= since % chosen.step
    found = await gateway.store.volumes.buckets(webhook_id, since, until, chosen.step)
    total = Volume()
    for volume in found.values():
        for code, calls in volume.by_code.items():
            total.add(code, calls, [0] * len(volume.within))
        total.within = [mine + more for mine, more in zip(total.within, volume.within, strict=True)]
    return {
        "range": span,
        "since": iso(since * 60),
        "until": iso(until * 60),
        "stepMinutes": chosen.step,
        "points": [
            _point(minute, found.get(minute) or Volume()) for minute in range(since, until, chosen.step)
        ],
        "total": {
            "calls": total.calls,
            "codes": dict(sorted(total.by_code.items(), key=lambda pair: -pair[1])),
            **_figures(total),
        },
    }


async def last_day(gateway: Gateway, actor: Actor, webhook_ids: list[str]) -> dict[str, dict[str, Any]]:
    """By webhook: the calls of each of the last 24 hours, the oldest first, and how many of the latest were
    refused or could not be started."""
    require(actor, "read")
    now = int(gateway.clock() // 60)
    first = now - now % SPARKLINE_STEP - 23 * SPARKLINE_STEP
    if not webhook_ids:
        return {}
    found = await gateway.store.volumes.calls(webhook_ids, first, now + 1, SPARKLINE_STEP)
    trouble = await gateway.store.deliveries.in_trouble(
        webhook_ids, (now - now % SPARKLINE_STEP - SPARKLINE_STEP) * 60
    )
    hours = range(first, now + 1, SPARKLINE_STEP)
    return {
        webhook_id: _day([found[webhook_id].get(hour, {}) for hour in hours], trouble.get(webhook_id, 0))
        for webhook_id in webhook_ids
    }


def _day(hours: list[dict[str, int]], not_started: int) -> dict[str, Any]:
    latest = hours[-2:]
    recent = sum(sum(hour.values()) for hour in latest)
    refused = sum(outcomes(hour)["rejected"] for hour in latest)
    return {
        "hours": [sum(hour.values()) for hour in hours],
        "calls": sum(sum(hour.values()) for hour in hours),
        "recent": {"calls": recent, "rejected": refused, "notStarted": not_started},
        "refusing": refused > 0 and refused * 2 >= recent,
    }


def _point(minute: int, volume: Volume) -> dict[str, Any]:
    return {"at": iso(minute * 60), "calls": volume.calls, **_figures(volume)}


def _figures(volume: Volume) -> dict[str, Any]:
    return {
        "outcomes": {name: volume.outcomes()[name] for name in OUTCOMES},
        "latencyMs": {
            "p50": volume.percentile(0.5),
            "p95": volume.percentile(0.95),
            "p99": volume.percentile(0.99),
        },
    }
