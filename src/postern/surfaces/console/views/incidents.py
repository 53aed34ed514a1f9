"""The pages about incidents: their list, and each one as a place to work in."""

from starlette.responses import Response

from postern.core.history.failures import alike
from postern.core.history.invocation import HistoryFilter
from postern.core.problems import Refused
from postern.surfaces.console import pages, senders, words
from postern.surfaces.console.views.history import sentences
from postern.surfaces.console.views.history.listing import CallRow, names, rows_of
from postern.surfaces.console.views.history.replays import MOST_UNTYPED
from postern.surfaces.console.views.history.story import FOLLOWED_FOR
from postern.surfaces.console.views.history.volume import strip_of
from postern.surfaces.console.visit import Form, ShownProblem, Visit, or_none, problem_of, whole_number
from postern.usecases.alarms import channels, incidents
from postern.usecases.alarms.views import Incident
from postern.usecases.calls import readmission
from postern.usecases.deliveries import replays
from postern.usecases.signatures import remedies
from postern.usecases.summary import InvocationSummary
from postern.usecases.webhooks import webhooks

A_PAGE = 50


async def listing(visit: Visit) -> Response:
    page = await visit.ask(
        incidents.listing, A_PAGE, visit.query.get("after"), visit.query.get("webhook") or None
    )
    return visit.page(
        "incidents/list.html",
        incidents=page.items,
        after=page.next_cursor,
        channels=(await visit.ask(channels.listing)).items,
    )


async def show(visit: Visit) -> Response:
    return await _page(visit, asks_again=visit.wants_part)


async def _page(
    visit: Visit, said: str = "", wrong: ShownProblem | None = None, asks_again: bool = False
) -> Response:
    incident, left, of, newest = await visit.ask(incidents.at_a_glance, visit.at("incident"))
    # A page that asks again by itself keeps its deed: to find that out judges all that was rejected.
    keeps = asks_again and incident.kind == "rejected" and incident.closed_at is None
    actions = [] if keeps else (await visit.ask(incidents.show, incident.id)).next_actions
    webhook = await or_none(visit.ask(webhooks.show, incident.webhook_id)) if incident.webhook_id else None
    failed = next((offer.count for offer in actions if offer.action == "replay"), 0) or 0
    now = visit.gateway.clock()
    until = float(incident.closed_at or now)
    return visit.page(
        "incidents/detail.html",
        wrong.status if wrong else 200,
        incident=incident,
        left=left,
        of=of,
        under_way=max(0, (left or 0) - failed),
        moves=incident.closed_at is None
        or (now - until < FOLLOWED_FOR and any(item.status in ("accepted", "started") for item in newest)),
        groups=_groups(newest),
        listed=len(newest),
        names={} if incident.webhook_id else await names(visit, {item.webhook_id for item in newest}),
        strip=await strip_of(visit, HistoryFilter(incident.webhook_id, since=incident.first_at, until=until)),
        actions=actions,
        asks_again=asks_again,
        keeps=keeps,
        webhook=webhook,
        sender=senders.of(webhook) if webhook else None,
        most_untyped=MOST_UNTYPED,
        said=said,
        wrong=wrong,
        # The heading has the reason, and the link of a call needs a name.
        reason=lambda item: "" if item.event or item.fields else f"{item.method} from {item.address or '?'}",
        path="/calls",
    )


def _groups(newest: list[InvocationSummary]) -> dict[str, list[CallRow]]:
    """The calls under the reason that they share."""
    groups: dict[str, list[InvocationSummary]] = {}
    for item in newest:
        reason = sentences.reason(item).removesuffix(".")
        groups.setdefault(alike(reason) if item.status == "failed" else reason, []).append(item)
    return {reason: rows_of(items) for reason, items in groups.items()}


async def do(visit: Visit) -> Response:
    """Something is done about an incident. One stays at it, and sees what comes of it."""
    at, form = f"/incidents/{visit.at('incident')}", await visit.form()
    try:
        said = await _done(visit, form)
    except Refused as refused:
        if refused.code == "not_found":
            raise
        return await _page(visit, wrong=problem_of(refused))
    if said.startswith("/"):
        return visit.to(said)
    return await _page(visit, said) if visit.wants_part else visit.to(at)


async def _done(visit: Visit, form: Form) -> str:
    """A sentence about what was done, or where it goes on."""
    incident, *_ = await visit.ask(incidents.at_a_glance, visit.at("incident"), 1)
    match visit.at("deed"):
        case "acknowledge":
            await visit.ask(incidents.acknowledge, incident.id, form.text("note"))
            return pages.NOTICES["acknowledged"]
        case "fix":
            call, number = form.text("invocation"), whole_number(form.text("number")) or 0
            await visit.ask(remedies.apply, call, number)
            return pages.NOTICES["fixed"]
        case "secret":
            await visit.ask(remedies.take_second_secret, form.text("invocation"), form.text("secret"))
            return await _admitted(visit, incident)
        case "admit":
            return await _admitted(visit, incident)
        case "replay" if incident.webhook_id:
            failed = HistoryFilter(webhook_id=incident.webhook_id, status="failed")
            made = await visit.ask(replays.plan, failed)
            if made.count > MOST_UNTYPED:
                return f"/replays/{made.id}"
            if made.count:
                await visit.ask(replays.begin, made.id)
            return f"{words.plural(made.count, 'call')} replayed: this page shows what becomes of them."
        case _:
            raise Refused("not_found")


async def _admitted(visit: Visit, incident: Incident) -> str:
    done = await visit.ask(readmission.admit_all, incident.webhook_id or "")
    return " ".join(sentence for sentence in done.in_words if not sentence.startswith("0 calls"))
