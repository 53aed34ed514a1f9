"""Choosing a webhook on a page: by a part of its name, however many there are."""

from msgspec import Struct
from starlette.responses import Response

from postern.surfaces.console.visit import Visit
from postern.usecases.webhooks import picking
from postern.usecases.webhooks.picking import WebhookChoice


class Picked(Struct, frozen=True):
    """The one that is chosen, if any is, and the first few to choose from."""

    id: str
    shown: str
    choices: list[WebhookChoice]
    deleted: bool
    signed: bool


async def picked(visit: Visit, webhook_id: str, *, deleted: bool = False, signed: bool = False) -> Picked:
    offered = await visit.ask(picking.choices, deleted=deleted, signed=signed)
    chosen = await visit.ask(picking.one, webhook_id) if webhook_id else None
    return Picked(webhook_id, chosen.typed if chosen else "", offered, deleted, signed)


async def choices(visit: Visit) -> Response:
    """The webhooks to offer below the field while somebody types."""
    search = visit.query.get(visit.query.get("of", "search"), "").strip()[:200]
    offered = await visit.ask(
        picking.choices, search, deleted="deleted" in visit.query, signed="signed" in visit.query
    )
    return visit.page("choices.html", choices=offered)
