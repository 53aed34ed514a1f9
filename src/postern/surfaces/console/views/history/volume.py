"""Calls to all webhooks together, or to one."""

from starlette.responses import Response

from postern.surfaces.console import senders
from postern.surfaces.console.views import picker
from postern.surfaces.console.views.history.sent import webhook_or_none
from postern.surfaces.console.visit import Visit
from postern.usecases.history import volumes
from postern.usecases.webhooks import picking


async def show(visit: Visit) -> Response:
    webhook_id = await picking.meant(visit.gateway, visit.actor, visit.query.get("webhook", ""))
    span = visit.query.get("range", "day")
    chart = await volumes.chart(visit.gateway, visit.actor, webhook_id or None, span)
    picked = await picker.picked(visit, webhook_id, deleted=True)
    webhook = await webhook_or_none(visit, webhook_id) if webhook_id else None
    return visit.page(
        "volume.html",
        chart=chart,
        ranges=volumes.RANGES,
        picked=picked,
        of=webhook_id,
        sender=webhook and senders.of(webhook),
    )
