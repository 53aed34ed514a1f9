"""Deleted webhooks, for as long as they can be had back."""

from starlette.responses import Response

from postern.core.problems import Refused
from postern.surfaces.console import words
from postern.surfaces.console.views.confirmations import question
from postern.surfaces.console.visit import Visit
from postern.usecases.runtime.gateway import require
from postern.usecases.webhooks import bin

A_PAGE = 100


async def show(visit: Visit, result: str = "") -> Response:
    page = await visit.ask(bin.listing, A_PAGE, visit.query.get("after"))
    return visit.page("bin.html", binned=page.items, after=page.next_cursor, result=result)


async def restore_many(visit: Visit) -> Response:
    """Restores the chosen webhooks and tells the result."""
    require(visit.actor, "write")
    chosen = dict.fromkeys(value for name, value in await visit.pairs() if name == "chosen")
    restored = 0
    for webhook_id in list(chosen)[:A_PAGE]:
        try:
            await visit.ask(bin.restore, webhook_id)
        except Refused as refused:
            if refused.code != "not_found":  # somebody else was faster
                raise
        else:
            restored += 1
    result = f"{words.plural(restored, 'webhook')} restored, as {'it was' if restored == 1 else 'they were'}."
    if restored < len(chosen):
        result += f" {words.plural(len(chosen) - restored, 'was', 'were')} no longer in the bin."
    return await show(visit, result=result if chosen else "Choose webhooks first.")


async def restore(visit: Visit) -> Response:
    webhook = await visit.ask(bin.restore, visit.at("webhook"))
    return visit.to(f"/webhooks/{webhook.id}", "restored")


async def delete(visit: Visit) -> Response:
    if response := await question(visit, "delete-for-good"):
        return response
    await visit.ask(bin.delete_for_good, visit.at("webhook"))
    return visit.to("/bin", "gone-for-good")
