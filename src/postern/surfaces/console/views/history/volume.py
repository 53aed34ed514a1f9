"""Calls over time, to all webhooks together or to one: a page, and a strip above each list of calls."""

from msgspec import Struct
from starlette.responses import Response

from postern.core.history.invocation import HistoryFilter
from postern.core.problems import PROBLEMS
from postern.surfaces.console import senders
from postern.surfaces.console.views import picker
from postern.surfaces.console.visit import Visit, or_none
from postern.usecases.answers import Time
from postern.usecases.history import volumes
from postern.usecases.webhooks import picking, webhooks


async def show(visit: Visit) -> Response:
    webhook_id = await visit.ask(picking.meant, visit.query.get("webhook", ""))
    span = visit.query.get("range", "day")
    chart = await visit.ask(volumes.chart, webhook_id or None, span)
    picked = await picker.picked(visit, webhook_id, deleted=True)
    webhook = await or_none(visit.ask(webhooks.show, webhook_id)) if webhook_id else None
    return visit.page(
        "volume.html",
        chart=chart,
        ranges=volumes.RANGES,
        picked=picked,
        of=webhook_id,
        sender=webhook and senders.of(webhook),
    )


HEIGHT = 44
WIDTH = 6


class Strip(Struct, frozen=True):
    """Strokes of three colours, one above the other, and what they are to scale."""

    title: str
    since: Time
    until: Time
    width: int
    accepted: str
    failed: str
    rejected: str
    calls: int
    chosen: tuple[int, int] | None
    """The begin of the chosen time in the strip, and its width."""
    reasons: list[str]
    """Why calls were rejected in that time."""

    @property
    def bars(self) -> int:
        return self.width // WIDTH


async def strip_of(visit: Visit, criteria: HistoryFilter) -> Strip:
    """The last day, or the last hour, week or month if the filter is about that. Other parts of the filter than the webhook
    are left out."""
    back = {"hour": 3_600, "day": 86_400, "week": 7 * 86_400}
    ago = 86_400 if criteria.since is None else visit.gateway.clock() - criteria.since
    span = next((name for name, seconds in back.items() if ago <= seconds + 1), "month")
    chart = await visit.ask(volumes.chart, criteria.webhook_id, span)
    most = max([point.calls for point in chart.points], default=0)
    strokes = {"accepted": "", "failed": "", "rejected": ""}
    for place, point in enumerate(chart.points):
        foot, rejected = HEIGHT, point.outcomes.rejected
        failed = min(point.failed_runs, point.calls - rejected)
        parts = {"accepted": point.calls - rejected - failed, "failed": failed, "rejected": rejected}
        for name, calls in parts.items():
            height = max(2, round(HEIGHT * calls / most)) if calls else 0
            if height:
                strokes[name] += f"M{place * WIDTH + WIDTH // 2} {foot}V{max(0, foot - height)}"
            foot -= height
    width = len(chart.points) * WIDTH
    begin, end = (
        round(width * max(0.0, min(1.0, (at - chart.since) / (chart.until - chart.since))))
        for at in (criteria.since or chart.since, criteria.until or chart.until)
    )
    return Strip(
        volumes.RANGES[span].title,
        chart.since,
        chart.until,
        width,
        calls=chart.total.calls,
        chosen=(begin, end - begin) if 0 < end - begin < width else None,
        reasons=[code for code in chart.total.codes if code in PROBLEMS],
        **strokes,
    )
