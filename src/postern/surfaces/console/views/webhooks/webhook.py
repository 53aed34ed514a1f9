"""One webhook's pages: a tab for each thing that can be said about it, each with an address of its own."""

from collections import Counter
from typing import Any

from starlette.responses import Response

from postern.core.history.invocation import HistoryFilter
from postern.identity import time_of
from postern.surfaces.console import senders
from postern.surfaces.console.views.history import sentences
from postern.surfaces.console.views.history.listing import page_of_calls, rows_of
from postern.surfaces.console.views.history.volume import strip_of
from postern.surfaces.console.views.webhooks import test_call
from postern.surfaces.console.visit import PageValues, Visit
from postern.usecases.answers import as_plain
from postern.usecases.calls import readmission
from postern.usecases.calls.views import Admitted
from postern.usecases.history import history
from postern.usecases.webhooks import webhooks
from postern.usecases.webhooks.views import Webhook

REJECTED_SHOWN = 50
LOOKS_FOR = 0.5
"""Seconds after which the page says how far judging rejected calls has come."""
TABS = [("", "Overview"), ("calls", "Calls"), ("settings", "Settings"), ("schedule", "Schedule")]
"""The last one where there is a schedule, or one is being made."""


async def loaded(visit: Visit, webhook_id: str = "") -> Webhook:
    return await visit.ask(webhooks.show, webhook_id or visit.at("webhook"))


def tab(
    visit: Visit, name: str, webhook: Webhook, status: int = 200, shown: str = "", **context: Any
) -> Response:
    """The tab's page, or one that is reached from it. ``form`` fills its form, in the words of the API."""
    form = {"form": as_plain(webhook)}
    return visit.page(
        f"webhook/{shown or name or 'overview'}.html", status, **head_of(webhook, name) | form | context
    )


def head_of(webhook: Webhook, name: str) -> PageValues:
    return {
        "webhook": webhook,
        "tab": name,
        "webhook_tabs": [
            entry for entry in TABS if entry[0] != "schedule" or webhook.schedule or name == "schedule"
        ],
        "titles": senders.titles(),
        "awaited": senders.awaited(webhook),
        "sender": senders.of(webhook),
        "rotation": getattr(webhook.authentication, "rotation", None),
    }


async def overview(visit: Visit) -> Response:
    webhook = await loaded(visit)
    latest = await visit.ask(history.listing, HistoryFilter(webhook.id), 10)
    waiting = (
        await visit.ask(history.listing, HistoryFilter(webhook.id, "held"), 200) if webhook.held else None
    )
    return tab(
        visit,
        "",
        webhook,
        strip=await strip_of(visit, HistoryFilter(webhook.id)),
        rows=rows_of(latest.items),
        reason=sentences.reason,
        waiting=waiting,
    )


async def calls(visit: Visit) -> Response:
    """The list of calls of this webhook, and sending it one."""
    webhook = await loaded(visit)
    more = head_of(webhook, "calls") | await test_call.context(visit, webhook.id)
    return await page_of_calls(visit, "webhook/calls.html", f"/webhooks/{webhook.id}/calls", **more)


async def rejected(visit: Visit, result: Admitted | None = None) -> Response:
    """Rejected calls, checked again with the settings as they are now: after a corrected secret nothing need be sent
    again."""
    webhook = await loaded(visit)
    checked = await visit.ask(readmission.recheck_within, webhook.id, LOOKS_FOR)
    passing = set() if checked.under_way else {call.invocation_id for call in checked.would_pass}
    every = (
        await visit.ask(history.count, HistoryFilter(webhook.id, "rejected")) if checked.under_way else None
    )
    # From the newest of them on: many that do not pass may have come since.
    until = time_of(checked.would_pass[-1].invocation_id) + 1 if passing else 0.0
    newest = HistoryFilter(webhook.id, "rejected", until=until)
    page = (await visit.ask(history.listing, newest, 200)).items if passing else []
    refused = [call for call in result.items if not call.admitted] if result else []
    return tab(
        visit,
        "calls",
        webhook,
        shown="rejected",
        found=checked,
        every=every,
        result=result,
        reasons=Counter(call.reason for call in refused).most_common(10),
        rows=rows_of([item for item in page if item.id in passing][:REJECTED_SHOWN]),
        reason=sentences.reason,
    )


async def admit_rejected(visit: Visit) -> Response:
    """All that pass now, the oldest first. Calls that have been admitted meanwhile, or came again, are left alone."""
    return await rejected(visit, await visit.ask(readmission.admit_all, visit.at("webhook")))
