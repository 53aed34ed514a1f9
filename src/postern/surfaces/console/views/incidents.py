"""The pages about incidents."""

from starlette.responses import Response

from postern.surfaces.console.visit import Visit
from postern.usecases.alarms import incidents, telling
from postern.usecases.alarms.views import TriedChannel

A_PAGE = 50


async def test(visit: Visit) -> Response:
    """Sends a test to every channel; the answer is the page with the results."""
    return await listing(visit, (await visit.ask(telling.test)).items)


async def listing(visit: Visit, tried: list[TriedChannel] | None = None) -> Response:
    page = await visit.ask(
        incidents.listing, A_PAGE, visit.query.get("after"), visit.query.get("webhook") or None
    )
    return visit.page(
        "incidents/list.html",
        incidents=page.items,
        after=page.next_cursor,
        channels=visit.gateway.alarms.channels,
        tried=tried,
    )


async def show(visit: Visit) -> Response:
    found = await visit.ask(incidents.show, visit.at("incident"))
    return visit.page("incidents/detail.html", incident=found)


async def acknowledge(visit: Visit) -> Response:
    done = await visit.ask(incidents.acknowledge, visit.at("incident"))
    return visit.to(f"/incidents/{done.id}", "acknowledged")
