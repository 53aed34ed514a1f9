"""Replaying many calls: the plan, its progress, and stopping it."""

from starlette.responses import Response

from postern.surfaces.console.views.history.calls import chosen_in, names, values_in, wanted
from postern.surfaces.console.visit import Visit
from postern.usecases.deliveries import replays
from postern.usecases.deliveries.views import Replay
from postern.usecases.webhooks import picking

A_PAGE = 30


async def listing(visit: Visit) -> Response:
    page = await replays.listing(visit.gateway, visit.actor, A_PAGE, visit.query.get("after"))
    return visit.page(
        "replays/list.html",
        replays=page.items,
        names=await names(visit, _meant(page.items)),
        after=page.next_cursor,
    )


def _meant(shown: list[Replay]) -> set[str]:
    return {one.filter.webhook_id for one in shown if one.filter.webhook_id}


async def plan(visit: Visit) -> Response:
    chosen = chosen_in(await visit.form())
    chosen["webhook"] = await picking.meant(visit.gateway, visit.actor, chosen["webhook"])
    made = await replays.plan(visit.gateway, visit.actor, wanted(visit, chosen))
    return visit.to(f"/replays/{made.id}")


async def show(visit: Visit) -> Response:
    """The page, and for htmx the same page again while it runs."""
    replay = await replays.show(visit.gateway, visit.actor, visit.at("replay"))
    return visit.page("replays/detail.html", replay=replay, names=await names(visit, _meant([replay])))


async def begin(visit: Visit) -> Response:
    await replays.begin(visit.gateway, visit.actor, visit.at("replay"), values_in(await visit.form()))
    return visit.to(f"/replays/{visit.at('replay')}")


async def cancel(visit: Visit) -> Response:
    await replays.cancel(visit.gateway, visit.actor, visit.at("replay"))
    return visit.to(f"/replays/{visit.at('replay')}", "cancelled")
