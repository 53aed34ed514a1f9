"""Asking before something is lost: a page, or a dialog of the page before, that says what will follow."""

from msgspec import Struct
from starlette.responses import Response

from postern.core.problems import Refused
from postern.surfaces.console import words
from postern.surfaces.console.visit import Visit
from postern.usecases.history import volumes
from postern.usecases.stored_webhook import NO_WEBHOOK
from postern.usecases.webhooks import bin, picking, webhooks
from postern.usecases.webhooks.views import Webhook


class Instead(Struct, frozen=True):
    """Something milder that may be what was wanted."""

    action: str
    label: str
    help: str


class Question(Struct, frozen=True):
    title: str
    consequences: list[str]
    action: str
    """Where the form goes."""
    label: str
    keep: str
    instead: Instead | None = None


STORED = (
    "Calls are checked and stored as usual. Their workflows wait until you release them; so does the answer of a workflow: "
    "callers are told at once that the call was accepted."
)


async def question(visit: Visit, action: str) -> Response | None:
    """What has to be answered first: where calls came within the last day, and where nothing can be undone."""
    if not visit.actor.may("write") or (await visit.form()).on("sure"):
        return None  # whoever may not do it hears that, and no question
    webhook_id = visit.at("webhook")
    lately = await _lately(visit, webhook_id)
    if not lately and action != "delete-for-good":
        return None
    template = "confirm/dialog.html" if visit.wants_part else "confirm/page.html"
    asked = await _question(visit, webhook_id, action, lately)
    came_from = (await visit.form()).get("from", "")
    return visit.page(template, question=asked, back=f"/webhooks/{webhook_id}", came_from=came_from)


async def _question(visit: Visit, webhook_id: str, action: str, lately: list[str]) -> Question:
    name = await _name(visit, webhook_id)
    at = f"/webhooks/{webhook_id}"
    match action:
        case "delete":
            return Question(
                f"Delete {name}?",
                [
                    *lately,
                    "From now on whoever calls its URL hears 404.",
                    "For seven days it can be restored from the bin, with its URL, settings, secrets and history. Then "
                    "its settings and secrets are gone for good.",
                ],
                f"{at}/delete",
                "Delete the webhook",
                "Keep it",
            )
        case "disable":
            hears = "From now on each call hears 403. Many senders try again for some hours or days; some give the webhook up."
            return Question(
                f"Disable {name}?",
                [*lately, hears],
                f"{at}/disable",
                "Disable the webhook",
                "Leave it enabled",
                instead=None
                if await _is_held(visit, webhook_id)
                else Instead(f"{at}/hold", "Hold instead", STORED),
            )
        case "hold":
            return Question(
                f"Hold {name}?", [*lately, STORED], f"{at}/hold", "Hold the webhook", "Let it run"
            )
        case _:
            return Question(
                f"Delete {name} for good?",
                [
                    "Its settings and secrets are deleted now, and cannot be had back.",
                    "Its URL is never given out again. Its history stays until retention takes it.",
                ],
                f"/bin/{webhook_id}/delete",
                "Delete it for good",
                "Leave it in the bin",
            )


async def _name(visit: Visit, webhook_id: str) -> str:
    """Also of one that is in the bin, or whose settings cannot be read."""
    name = (await picking.names(visit.gateway, visit.actor, [webhook_id])).get(webhook_id)
    if name is None:
        binned = (await bin.listing(visit.gateway, visit.actor, only=webhook_id)).items
        name = next((one.name for one in binned), None)
    if name is None:
        raise Refused("not_found", NO_WEBHOOK)
    return name


async def _is_held(visit: Visit, webhook_id: str) -> bool:
    try:
        return (await webhooks.show(visit.gateway, visit.actor, webhook_id)).held
    except Refused:
        return False  # its settings cannot be read


async def _lately(visit: Visit, webhook_id: str) -> list[str]:
    """Who would notice, where somebody would."""
    try:
        webhook = await webhooks.show(visit.gateway, visit.actor, webhook_id)
    except Refused:
        return []  # one that cannot be served has no callers to lose
    day = (await volumes.last_day(visit.gateway, visit.actor, [webhook_id]))[webhook_id]
    waits = ["What waits behind its hold waits on."] if webhook.held else []
    return [came_lately(webhook, day), *waits] if day.calls else []


def came_lately(webhook: Webhook, day: volumes.Day) -> str:
    if day.calls:
        return f"{words.plural(day.calls, 'call')} came in the last 24 hours."
    if webhook.last_call_at is not None:
        return f"No call came in the last 24 hours; the last one came {words.ago(webhook.last_call_at)}."
    return "It has never been called."
