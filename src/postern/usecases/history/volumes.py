"""The numbers behind charts: calls by outcome, and how long their callers waited."""

from msgspec import Struct

from postern.core.access.accounts import Actor
from postern.core.history.volume import Counts, Volume
from postern.core.problems import invalid
from postern.core.webhooks.listing import Activity
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


class Day(Struct, frozen=True):
    """The last 24 hours of a webhook: the calls of each hour, the oldest first, and the activity."""

    hours: list[int]
    lately: Activity

    @property
    def calls(self) -> int:
        return sum(self.hours)


async def chart(gateway: Gateway, actor: Actor, webhook_id: str | None = None, span: str = "day") -> Chart:
    """One webhook's calls, or all webhooks', point by point, with the totals of the range."""
    require(actor, "read")
    if span not in RANGES:
        raise invalid("range", f"choose one of: {', '.join(RANGES)}")
    chosen = RANGES[span]
    until = int(gateway.clock() // 60) + 1
    since = until - chosen.minutes
    since -= since % chosen.step
    found = await gateway.store.volumes.buckets(webhook_id, since, until, chosen.step)
    total = Volume()
    for volume in found.values():
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
                latency_ms=_latency(volume),
            )
            for minute in range(since, until, chosen.step)
            for volume in [found.get(minute) or Volume()]
        ],
        total=Total(
            calls=total.calls.total,
            codes=_most_first(total.calls),
            outcomes=Outcomes(**total.outcomes()),
            latency_ms=_latency(total),
            answers=_most_first(total.answers),
            runs=_most_first(total.ends),
            run_ms=_percentiles(total.ends),
        ),
    )


async def last_day(gateway: Gateway, actor: Actor, webhook_ids: list[str]) -> dict[str, Day]:
    """The last 24 hours by webhook."""
    require(actor, "read")
    if not webhook_ids:
        return {}
    first, recent, until = last_hours(gateway.clock())
    found = await gateway.store.volumes.calls(webhook_ids, first, until, SPARKLINE_STEP)
    lately = await gateway.store.activities.all(first, recent, until, webhook_ids)
    hours = range(first, until, SPARKLINE_STEP)
    return {one: Day([found[one][hour] for hour in hours], lately.of(one)) for one in webhook_ids}


def last_hours(now: float) -> tuple[int, int, int]:
    """The first minute of the last 24 hours, the first one that is recent, and the one after the last."""
    minute = int(now // 60)
    hour = minute - minute % SPARKLINE_STEP
    return hour - 23 * SPARKLINE_STEP, hour - SPARKLINE_STEP, minute + 1


def _latency(volume: Volume) -> Latency:
    """How long callers waited. Old volumes do not have that; then how long judging took."""
    return _percentiles(volume.answers if volume.answers.total else volume.calls)


def _percentiles(counts: Counts) -> Latency:
    return Latency(p50=counts.percentile(0.5), p95=counts.percentile(0.95), p99=counts.percentile(0.99))


def _most_first(counts: Counts) -> dict[str, int]:
    return dict(sorted(counts.by_name.items(), key=lambda pair: -pair[1]))
