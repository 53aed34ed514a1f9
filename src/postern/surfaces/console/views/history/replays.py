"""Replaying many calls: the plan, its progress, and stopping it."""

from starlette.responses import Response

from postern.core.history.invocation import HistoryFilter, Status
from postern.surfaces.console.views.history import sentences
from postern.surfaces.console.views.history.asked import Chip, chips, chosen_in
from postern.surfaces.console.views.history.call import values_in
from postern.surfaces.console.views.history.listing import names, rows_of, wanted
from postern.surfaces.console.visit import Visit, deed, whole_number
from postern.usecases.answers import as_plain
from postern.usecases.deliveries import replays
from postern.usecases.deliveries.views import Replay
from postern.usecases.history import history
from postern.usecases.webhooks import picking

A_PAGE = 30
SHOWN = 20
"""Calls of a replay, on its page."""
MOST_UNTYPED = 100
"""Calls: the number of more is to be typed."""


async def listing(visit: Visit) -> Response:
    page = await visit.ask(replays.listing, A_PAGE, visit.query.get("after"))
    return visit.page(
        "replays/list.html",
        replays=page.items,
        chips=_chips(page.items, await names(visit, {one.filter.webhook_id or "" for one in page.items})),
        after=page.next_cursor,
    )


def _chips(shown: list[Replay], named: dict[str, str]) -> dict[str, list[Chip]]:
    """The filter of each replay, as the field of the page Calls shows it."""
    return {replay.id: chips(_chosen(replay), replay.filter, named) for replay in shown}


async def plan(visit: Visit) -> Response:
    form = await visit.form()
    chosen = chosen_in(form)
    chosen["webhook"] = await visit.ask(picking.meant, chosen["webhook"])
    completed = form.text("completed") == "on"
    made = await visit.ask(replays.plan, wanted(visit, chosen), completed)
    return visit.to(f"/replays/{made.id}")


async def show(visit: Visit) -> Response:
    """The page, and for htmx the same page again while it runs."""
    return await _page(visit, await visit.ask(replays.show, visit.at("replay")))


async def _page(visit: Visit, replay: Replay, status: int = 200, wrong: str = "") -> Response:
    again: Status | None = "failed" if replay.outcomes.failed else None
    wanted_calls = HistoryFilter(replay=replay.id, status=again)
    shown = await visit.ask(history.listing, wanted_calls, SHOWN) if replay.done else None
    items = shown.items if shown else []
    named = await names(visit, {replay.filter.webhook_id or "", *(item.webhook_id for item in items)})
    return visit.page(
        "replays/detail.html",
        status,
        replay=replay,
        rows=rows_of(items),
        reason=sentences.reason,
        names=named,
        chips=_chips([replay], named),
        chosen=_chosen(replay),
        most_untyped=MOST_UNTYPED,
        wrong=wrong,
    )


def _chosen(replay: Replay) -> dict[str, str]:
    """Its filter, as the list's address has it."""
    fields = as_plain(replay.filter)
    if replay.filter.until is not None and replay.filter.until > replay.created_at:
        del fields["until"]  # nobody asked for it: the plan ends where it was made
    fields |= {"webhook": fields.pop("webhookId"), "marked": "on" if fields.pop("bookmarked") else ""}
    for name in ("since", "until"):
        fields[name] = (fields.get(name) or "").removesuffix("Z")
    return {name: value for name, value in fields.items() if value}


async def begin(visit: Visit) -> Response:
    form = await visit.form()
    replay = await visit.ask(replays.show, visit.at("replay"))
    if replay.count > MOST_UNTYPED and whole_number(form.text("typed")) != replay.count:
        return await _page(visit, replay, 422, f"Type the number of calls, {replay.count}.")
    if replay.state == "planned":  # else another click, or another tab, was first
        await visit.ask(replays.begin, replay.id, values_in(form))
    return visit.to(f"/replays/{visit.at('replay')}")


cancel = deed(replays.cancel, "replay", "/replays/{replay}", "cancelled")
