"""One webhook's pages: a tab for each thing that can be said about it, each with an address of its own."""

from collections import Counter
from typing import Any
from urllib.parse import urlencode

from msgspec import Struct
from starlette.responses import Response

from postern.core.history.invocation import HistoryFilter
from postern.surfaces.console import senders, words
from postern.surfaces.console.views.history import sentences, strip
from postern.surfaces.console.views.history.listing import page_of_calls, rows_of
from postern.surfaces.console.views.webhooks import test_call
from postern.surfaces.console.visit import Context, Visit
from postern.usecases.answers import as_plain
from postern.usecases.history import history, volumes
from postern.usecases.webhooks import webhooks
from postern.usecases.webhooks.views import Rotation, SecretUse, Webhook, WithSignature, WithToken

TABS = [("", "Overview"), ("calls", "Calls"), ("settings", "Settings"), ("schedule", "Schedule")]
"""The last one where there is a schedule, or one is being made."""


class Head(Struct, frozen=True):
    """What the head of every tab shows: the webhook, and how its last day went."""

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
        "asks": senders.asked_again(head.webhook),
    }


class WrongLately(Struct, frozen=True):
    """What went wrong alike several times, or once."""

    what: str
    count: int
    or_more: bool
    since: float
    href: str


async def _wrong_lately(visit: Visit, head: Head) -> list[WrongLately]:
    """Why the webhook is marked as failing: what its calls failed with, and why they were rejected. An incident says it
    already."""
    if any(one.webhook_id == head.webhook.id for one in visit.gateway.runtime.incidents):
        return []
    lately, at = head.day.lately, f"/webhooks/{head.webhook.id}/calls?status="
    found = []
    if lately.not_started:
        wanted = HistoryFilter(head.webhook.id, "failed", since=visit.gateway.clock() - 86_400)
        groups, or_more = await history.failures(visit.gateway, visit.actor, wanted)
        found += [
            WrongLately(
                one.error, one.count, or_more, one.since, f"{at}failed&{urlencode({'error': one.error})}"
            )
            for one in groups
        ]
    if lately.rejecting:
        _, recent, _ = volumes.last_hours(visit.gateway.clock())
        wanted = HistoryFilter(head.webhook.id, "rejected", since=recent * 60)
        page = await history.listing(visit.gateway, visit.actor, wanted, 200)
        reasons = Counter(item.code for item in page.items)
        first = {item.code: item.received_at for item in page.items}  # the newest come first
        found += [
            WrongLately(
                words.code(code),
                count,
                page.next_cursor is not None,
                first[code],
                f"{at}rejected&reason={code}",
            )
            for code, count in reasons.most_common(MOST_WRONG)
        ]
    return found[:MOST_WRONG]


MOST_WRONG = 3


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
        wrong_lately=await _wrong_lately(visit, head),
        strip=await strip.of(visit, HistoryFilter(webhook.id)),
        rows=rows_of(latest.items),
        reason=sentences.reason,
        rotation=rotation(webhook),
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


class ShownRotation(Struct, frozen=True):
    """Where a change of secrets stands, with how often each was used."""

    state: Rotation
    main: SecretUse
    second: SecretUse


def rotation(webhook: Webhook) -> ShownRotation | None:
    match webhook.authentication:
        case WithToken(
            rotation=Rotation() as state,
            token_use=SecretUse() as main,
            second_token_use=SecretUse() as second,
        ):
            return ShownRotation(state, main, second)
        case WithSignature(
            rotation=Rotation() as state,
            secret_use=SecretUse() as main,
            second_secret_use=SecretUse() as second,
        ):
            return ShownRotation(state, main, second)
        case _:
            return None  # only one secret is valid, or none is asked for
