"""The list of webhooks, and what a row's menu does."""

from starlette.responses import Response

from postern.surfaces.console.senders import titles
from postern.surfaces.console.views.confirmations import typed_name
from postern.surfaces.console.visit import Visit
from postern.usecases.deliveries import holds
from postern.usecases.history import volumes
from postern.usecases.listeners import listeners
from postern.usecases.webhooks import bin, webhooks


async def listing(visit: Visit) -> Response:
    search = visit.query.get("search", "").strip()
    found = await webhooks.listing(visit.gateway, visit.actor, 50, visit.query.get("after"), search or None)
    binned = (await bin.listing(visit.gateway, visit.actor)).items
    days = await volumes.last_day(visit.gateway, visit.actor, [webhook.id for webhook in found.items])
    return visit.page(
        "webhooks.html",
        webhooks=found.items,
        unreadable=found.unreadable or [],
        after=found.next_cursor,
        days=days,
        search=search,
        titles=titles(),
        binned=binned,
        undo=next((one for one in binned if one.id == visit.query.get("undo")), None),
    )


async def enable(visit: Visit) -> Response:
    await webhooks.switch(visit.gateway, visit.actor, visit.at("webhook"), True)
    return visit.to(await _back(visit), "enabled")


async def disable(visit: Visit) -> Response:
    await webhooks.switch(visit.gateway, visit.actor, visit.at("webhook"), False)
    return visit.to(await _back(visit), "disabled")


async def hold(visit: Visit) -> Response:
    await holds.hold(visit.gateway, visit.actor, visit.at("webhook"))
    return visit.to(f"/webhooks/{visit.at('webhook')}", "held")


async def release(visit: Visit) -> Response:
    await holds.release(visit.gateway, visit.actor, visit.at("webhook"))
    return visit.to(f"/webhooks/{visit.at('webhook')}", "released")


async def drop(visit: Visit) -> Response:
    await holds.drop(visit.gateway, visit.actor, visit.at("webhook"))
    return visit.to(f"/webhooks/{visit.at('webhook')}", "dropped")


async def end_listener(visit: Visit) -> Response:
    form = await visit.form()
    await listeners.end(visit.gateway, visit.actor, form.text("listener"))
    return visit.to(f"/webhooks/{visit.at('webhook')}", "listener-ended")


async def delete(visit: Visit) -> Response:
    again = await typed_name(visit, "delete")
    if again is not None:
        return again
    await webhooks.remove(visit.gateway, visit.actor, visit.at("webhook"))
    return visit.to(f"/webhooks?undo={visit.at('webhook')}", "deleted")


async def _back(visit: Visit) -> str:
    return (
        f"/webhooks/{visit.at('webhook')}" if (await visit.form()).get("from") == "webhook" else "/webhooks"
    )
