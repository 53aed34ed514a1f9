"""Asking before something is lost: a page, or a dialog of the page before, that says what will follow."""

from typing import Any

from msgspec import Struct
from starlette.responses import Response

from postern.core.problems import Refused
from postern.surfaces.console import words
from postern.surfaces.console.visit import Visit, or_none
from postern.usecases.history import volumes
from postern.usecases.stored_webhook import NO_WEBHOOK
from postern.usecases.webhooks import picking, webhooks
from postern.usecases.webhooks.views import Webhook

FOLLOWS = {
    "enable": ["Calls are accepted again."],
    "disable": [
        "From now on each call hears 403. Many senders try again for some hours or days; some give the webhook up."
    ],
    "hold": [
        "Calls are checked and stored as usual. Their workflows wait until you release them; so does the answer of a "
        "workflow: callers are told at once that the call was accepted."
    ],
    "delete": [
        "From now on whoever calls hears 404.",
        "For seven days everything can be restored from the bin: URL, settings, secrets and history. Then settings and "
        "secrets are gone for good.",
    ],
    "delete-for-good": [
        "Its settings and secrets are deleted now, and cannot be restored.",
        "Its URL is never given out again. Its history stays until retention deletes it.",
    ],
}
"""The consequences of each action, for one webhook and for many."""


class Question(Struct, frozen=True):
    title: str
    consequences: list[str]
    action: str
    """The address of the form; empty where nothing can be answered."""
    label: str
    hidden: list[tuple[str, str]]
    """Names and values that the form carries along."""
    danger: bool = True
    holds_instead: str = ""
    """The address of a milder choice: to hold the webhook instead."""


def asked(visit: Visit, question: Question, back: str, status: int = 200, **more: Any) -> Response:
    template = "confirm/dialog.html" if visit.wants_part else "confirm/page.html"
    return visit.page(template, status, question=question, back=back, **({"asks": ""} | more))


async def question(visit: Visit, action: str) -> Response | None:
    """Asks first where calls came within the last day, and where nothing can be undone. None: act at once."""
    form = await visit.form()
    if not visit.actor.may("write") or form.on("sure"):
        return None  # whoever may not do it hears that, and no question
    webhook_id, for_good = visit.at("webhook"), action == "delete-for-good"
    webhook = await or_none(visit.ask(webhooks.show, webhook_id))  # one in the bin has no callers to lose
    lately = []
    if webhook is not None and (calls := await calls_lately(visit, webhook_id)):
        lately.append(came_lately(webhook, calls))
        lately += ["Calls that wait behind its hold stay there."] if webhook.held else []
    if not lately and not for_good:
        return None
    # Also of one that is in the bin, or whose settings cannot be read.
    named = await visit.ask(picking.names, [webhook_id], deleted=True)
    if webhook_id not in named:
        raise Refused("not_found", NO_WEBHOOK)
    name = named[webhook_id].removesuffix(picking.DELETED)
    may_hold = action == "disable" and webhook is not None and not webhook.held
    confirmation = Question(
        f"Delete {name} for good?" if for_good else f"{action.capitalize()} {name}?",
        lately + FOLLOWS[action],
        f"/bin/{webhook_id}/delete" if for_good else f"/webhooks/{webhook_id}/{action}",
        "Delete it for good" if for_good else f"{action.capitalize()} the webhook",
        [("from", form.get("from", ""))],
        holds_instead=f"/webhooks/{webhook_id}/hold" if may_hold else "",
    )
    return asked(visit, confirmation, f"/webhooks/{webhook_id}", instead_follows=FOLLOWS["hold"][0])


async def calls_lately(visit: Visit, webhook_id: str) -> int:
    return sum((await visit.ask(volumes.last_day, [webhook_id]))[webhook_id])


def came_lately(webhook: Webhook, calls: int) -> str:
    if calls:
        return f"{words.plural(calls, 'call')} came in the last 24 hours."
    if webhook.last_call_at is not None:
        return f"No call came in the last 24 hours; the last one came {words.ago(webhook.last_call_at)}."
    return "It has never been called."
