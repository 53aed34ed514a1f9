"""Deleted webhooks, for as long as they can be had back."""

from starlette.responses import Response

from postern.surfaces.console.views.confirmations import typed_name
from postern.surfaces.console.visit import Visit
from postern.usecases.webhooks import bin


async def show(visit: Visit) -> Response:
    page = await bin.listing(visit.gateway, visit.actor, 100, visit.query.get("after"))
    return visit.page("bin.html", binned=page.items, after=page.next_cursor)


async def restore(visit: Visit) -> Response:
    webhook = await bin.restore(visit.gateway, visit.actor, visit.at("webhook"))
    return visit.to(f"/webhooks/{webhook.id}", "restored")


async def delete(visit: Visit) -> Response:
    again = await typed_name(visit, "delete-for-good")
    if again is not None:
        return again
    await bin.delete_for_good(visit.gateway, visit.actor, visit.at("webhook"))
    return visit.to("/bin", "gone-for-good")
