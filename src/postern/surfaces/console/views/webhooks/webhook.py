"""One webhook's pages: a tab for each thing that can be said about it, each with an address of its own."""

from typing import Any

from msgspec import Struct
from starlette.responses import Response

from postern.core.history.invocation import HistoryFilter
from postern.surfaces.console import senders
from postern.surfaces.console.views.history import sentences, strip
from postern.surfaces.console.views.history.listing import page_of_calls, rows_of
from postern.surfaces.console.views.webhooks import test_call
from postern.surfaces.console.visit import Context, Visit
from postern.usecases.answers import as_plain
from postern.usecases.history import history, volumes
from postern.usecases.webhooks import webhooks
from postern.usecases.webhooks.views import Webhook

TABS = [("", "Overview"), ("calls", "Calls"), ("settings", "Settings"), ("schedule", "Schedule")]
"""The last one where there is a schedule, or one is being made."""


class Head(Struct, frozen=True):
    """The webhook and its last day, as the head of every tab shows them."""

    webhook: Webhook
    day: volumes.Day


async def loaded(visit: Visit, webhook_id: str = "") -> Head:
    webhook = await webhooks.show(visit.gateway, visit.actor, webhook_id or visit.at("webhook"))
    days = await volumes.last_day(visit.gateway, visit.actor, [webhook.id])
    return Head(webhook, days[webhook.id])


def tab(visit: Visit, name: str, head: Head, status: int = 200, shown: str = "", **context: Any) -> Response:
    """The tab's page, or one that is reached from it. ``form`` fills its form, in the words of the API."""
    form = {"form": as_plain(head.webhook)}
    return visit.page(
        f"webhook/{shown or name or 'overview'}.html", status, **head_of(head, name) | form | context
    )


def head_of(head: Head, name: str) -> Context:
    return {
        "webhook": head.webhook,
        "day": head.day,
        "tab": name,
        "webhook_tabs": [
            one for one in TABS if one[0] != "schedule" or head.webhook.schedule or name == "schedule"
        ],
        "titles": senders.titles(),
        "awaited": senders.awaited(head.webhook),
        "sender": senders.of(head.webhook),
        "rotation": getattr(head.webhook.authentication, "rotation", None),
    }


async def overview(visit: Visit) -> Response:
    head = await loaded(visit)
    webhook = head.webhook
    latest = await history.listing(visit.gateway, visit.actor, HistoryFilter(webhook.id), 10)
    waiting = (
        await history.listing(visit.gateway, visit.actor, HistoryFilter(webhook.id, "held"), 200)
        if webhook.held
        else None
    )
    return tab(
        visit,
        "",
        head,
        strip=await strip.of(visit, HistoryFilter(webhook.id)),
        rows=rows_of(latest.items),
        reason=sentences.reason,
        waiting=waiting,
        names={},
        after=None,
        kept="",
    )


async def calls(visit: Visit) -> Response:
    """The list of calls of this webhook, and sending it one."""
    head = await loaded(visit)
    more = head_of(head, "calls") | await test_call.context(visit, head.webhook.id)
    return await page_of_calls(visit, "webhook/calls.html", f"/webhooks/{head.webhook.id}/calls", **more)
