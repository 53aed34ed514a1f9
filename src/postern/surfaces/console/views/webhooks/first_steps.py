"""The first steps of a new webhook: its secret, its first call, the values for the workflow, the workflow."""

from msgspec import Struct
from starlette.responses import Response

from postern.core.history.invocation import HistoryFilter
from postern.surfaces.console import senders, words
from postern.surfaces.console.views.history import sentences
from postern.surfaces.console.visit import PageValues, Visit, or_none
from postern.usecases.history import history
from postern.usecases.operations import engine
from postern.usecases.summary import InvocationSummary
from postern.usecases.webhooks import webhooks
from postern.usecases.webhooks.views import Webhook, WithoutAuthentication, WithSignature


class FirstStep(Struct, frozen=True):
    title: str
    is_done: bool
    detail: str = ""
    href: str = ""
    link: str = ""


async def show(visit: Visit) -> Response:
    """The list alone, which asks for itself again while something is left to do."""
    webhook = await visit.ask(webhooks.show, visit.at("webhook"))
    return visit.page("creation/steps.html", webhook=webhook, **await steps(visit, webhook))


async def steps(visit: Visit, webhook: Webhook) -> PageValues:
    newest = await _first(visit, HistoryFilter(webhook.id))
    accepted = await _first(visit, HistoryFilter(webhook.id, code="accepted"))
    secret = [] if isinstance(webhook.authentication, WithoutAuthentication) else [_secret(webhook)]
    listed = [
        *secret,
        _first_call(newest, accepted),
        _mapped(webhook),
        await _workflow(visit, webhook, accepted),
    ]
    return {"steps": listed, "accepted": accepted}


async def _first(visit: Visit, criteria: HistoryFilter) -> InvocationSummary | None:
    page = await visit.ask(history.listing, criteria, 1)
    return page.items[0] if page.items else None


def _secret(webhook: Webhook) -> FirstStep:
    what = "secret" if isinstance(webhook.authentication, WithSignature) else "token"
    missing = senders.awaited(webhook)
    if missing is None:
        return FirstStep(f"The {what} is set", True)
    where = f"/webhooks/{webhook.id}/settings#secrets"
    return FirstStep("The secret is set", False, "Until then every call is rejected.", where, "Paste it")


def _first_call(newest: InvocationSummary | None, accepted: InvocationSummary | None) -> FirstStep:
    title = "A call was accepted"
    if accepted is not None:
        return FirstStep(title, True, "", f"/calls/{accepted.id}", "See the newest")
    if newest is None:
        return FirstStep(title, False, "Send a test call below, or have the sender call.")
    return FirstStep(
        title, False, f"The newest call: {sentences.reason(newest)}", f"/calls/{newest.id}", "Why"
    )


def _mapped(webhook: Webhook) -> FirstStep:
    chosen = len(webhook.field_mapping.paths())
    title = "Values for the workflow are chosen"
    detail = f"{chosen} of 4." if chosen else "If you want any: every workflow gets the whole payload."
    link = "Change them" if chosen else "Choose what the workflow gets"
    return FirstStep(title, chosen > 0, detail, f"/webhooks/{webhook.id}/settings?first#mapping", link)


async def hears(visit: Visit, webhook_id: str) -> list[str] | None:
    """The workflows that its calls start, where the engine says which it has."""
    known = await or_none(visit.ask(engine.workflows))
    if known is None:
        return None
    return [
        workflow.name
        for workflow in known.items
        if not workflow.webhook_ids or webhook_id in workflow.webhook_ids
    ]


async def starts(visit: Visit) -> Response:
    """Asked for by the overview, which waits for no engine."""
    webhook_id = visit.at("webhook")
    accepted = await _first(visit, HistoryFilter(webhook_id, code="accepted"))
    return visit.page(
        "webhook/starts.html",
        hears=await hears(visit, webhook_id),
        call=accepted.id if accepted and engine.runs_workflow_files(visit.gateway) else None,
    )


async def _workflow(visit: Visit, webhook: Webhook, accepted: InvocationSummary | None) -> FirstStep:
    title = "A workflow gets its calls"
    own = await hears(visit, webhook.id)
    if own:
        return FirstStep(title, True, words.listed(own) + ".")
    if own is None:
        if accepted is not None and accepted.runs:
            return FirstStep(title, True)
        return FirstStep(title, False, "This engine cannot list its workflows.", "/workflows", "Workflows")
    if accepted is None:
        return FirstStep(title, False, "None does yet; one can be begun from the first accepted call.")
    return FirstStep(
        title,
        False,
        "None does yet. Begun from the call, its file goes into the folder that POSTERN_WORKFLOWS names.",
        f"/calls/{accepted.id}/workflow",
        "Begin a workflow from this call",
    )
