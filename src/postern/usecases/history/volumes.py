"""The numbers behind charts: calls by outcome, and how long their callers waited."""

import time

from msgspec import Struct

from postern.core.access.accounts import Actor
from postern.core.history.volume import Counts, Volume
from postern.core.problems import invalid
from postern.usecases.answers import Time
from postern.usecases.history.views.calls import Chart, Latency, Outcomes, Point, Total
from postern.usecases.runtime.gateway import Gateway, require


class Range(Struct, frozen=True):
    title: str
    minutes: int
    step: int
    """The minutes of one point. Every range has about as many points as a chart can show."""


RANGES = {
    "hour": Range("Last hour", 60, 1),
    "day": Range("Last 24 hours", 24 * 60, 15),
    "week": Range("Last 7 days", 7 * 24 * 60, 120),
    "month": Range("Last 30 days", 30 * 24 * 60, 480),
}
SPARKLINE_STEP = 60


async def chart(gateway: Gateway, actor: Actor, webhook_id: str | None = None, span: str = "day") -> Chart:
    """One webhook's calls, or all webhooks', point by point, with the totals of the range."""
    require(actor, "read")
    if span not in RANGES:
        raise invalid("range", f"choose one of: {', '.join(RANGES)}")
    chosen = RANGES[span]
    until = int(gateway.clock() // 60) + 1
    since = until - chosen.minutes
    since -= since % chosen.step
    by_minute = await gateway.store.volumes.buckets(webhook_id, since, until, chosen.step)
    total = Volume()
    for volume in by_minute.values():
        total.add_all(volume)
    return Chart(
        range=span,
        since=Time(since * 60),
        until=Time(until * 60),
        step_minutes=chosen.step,
        points=[
            Point(
                at=Time(minute * 60),
                calls=volume.calls.total,
                outcomes=Outcomes(**volume.outcomes()),
                failed_runs=volume.ends.by_name.get("failed", 0),
                latency_ms=_percentiles(volume.answers),
            )
            for minute in range(since, until, chosen.step)
            for volume in [by_minute.get(minute) or Volume()]
        ],
        total=Total(
            calls=total.calls.total,
            codes=_most_first(total.calls),
            outcomes=Outcomes(**total.outcomes()),
            latency_ms=_percentiles(total.answers),
            answers=_most_first(total.answers),
            runs=_most_first(total.ends),
            run_ms=_percentiles(total.ends),
        ),
    )


async def last_day(gateway: Gateway, actor: Actor, webhook_ids: list[str]) -> dict[str, list[int]]:
    """The calls of each of the last 24 hours by webhook, the oldest hour first."""
    require(actor, "read")
    first, until = last_hours(gateway.clock())
    by_webhook = await gateway.store.volumes.calls(webhook_ids, first, until, SPARKLINE_STEP)
    return {
        webhook_id: [by_webhook[webhook_id][hour] for hour in range(first, until, SPARKLINE_STEP)]
        for webhook_id in webhook_ids
    }


async def last_day_of_all(gateway: Gateway) -> dict[str, int]:
    """The calls of the last 24 hours by webhook, of those that were called. With ten thousand webhooks this takes seconds, so it
    is kept for twenty times as long as it took."""
    runtime = gateway.runtime
    async with runtime.counting:
        began = time.monotonic()
        if began > runtime.last_day_until:
            first, until = last_hours(gateway.clock())
            by_webhook = await gateway.store.volumes.calls(None, first, until, RANGES["day"].minutes)
            runtime.last_day = {webhook_id: calls.total() for webhook_id, calls in by_webhook.items()}
            ended = time.monotonic()
            runtime.last_day_until = ended + 20 * (ended - began)
    return runtime.last_day


def last_hours(now: float) -> tuple[int, int]:
    """The first minute of the last 24 hours, and the one after the last."""
    minute = int(now // 60)
    return minute - minute % SPARKLINE_STEP - 23 * SPARKLINE_STEP, minute + 1


def _percentiles(counts: Counts) -> Latency:
    p50, p95, p99 = map(counts.percentile, (50, 95, 99))
    return Latency(count=counts.total, p50=p50, p95=p95, p99=p99)


def _most_first(counts: Counts) -> dict[str, int]:
    return dict(sorted(counts.by_name.items(), key=lambda pair: -pair[1]))
