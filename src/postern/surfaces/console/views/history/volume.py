"""All webhooks' calls together."""

from starlette.responses import Response

from postern.surfaces.console.visit import Visit
from postern.usecases.history import volumes


async def show(visit: Visit) -> Response:
    chart = await volumes.chart(visit.gateway, visit.actor, None, visit.query.get("range", "day"))
    return visit.page("volume.html", chart=chart, ranges=volumes.RANGES)
