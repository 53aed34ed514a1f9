"""Tries a setting on the last calls before it is saved."""

import asyncio
from collections import Counter
from dataclasses import replace as changed
from typing import Annotated

from pydantic import Field

from postern import presets
from postern.core.access.accounts import Actor
from postern.core.admit import admit_fetched
from postern.core.calls.paths import as_text, parse_path, path_problem, walk_members
from postern.core.history.invocation import HistoryFilter, Invocation, payload_of
from postern.core.verdict import Verdict
from postern.core.webhooks.bounds import place_of_key
from postern.core.webhooks.conditions import MOST_ROWS
from postern.core.webhooks.settings import DuplicateProtection
from postern.core.webhooks.webhook import Webhook
from postern.usecases.answers import Time
from postern.usecases.history.rows import sender_event_of
from postern.usecases.history.views.requests import TriedKey
from postern.usecases.runtime.gateway import Gateway, require
from postern.usecases.shapes import Shape, validated
from postern.usecases.stored_webhook import served, stored
from postern.usecases.webhooks.compiling import conditions_of
from postern.usecases.webhooks.requests import ConditionRowRequest, request_of
from postern.usecases.webhooks.views import NotStarting, SeenValue, SeenValues, TriedConditions
from postern.usecases.webhooks.warnings import about_rows

MOST_JUDGED, MOST_NAMED = 1_000, 100
PORTION, PORTION_BYTES, MOST_READ = 100, 8 * 1024 * 1024, 64 * 1024 * 1024
MOST_SEEN = 8
LAST = 20
LONGEST = 80
LARGEST_READ = 256 * 1024
"""Bytes. Larger bodies are not read while somebody types."""


async def duplicate_key(gateway: Gateway, actor: Actor, webhook_id: str, key: str) -> TriedKey:
    """In how many of the last calls duplicate protection would find this key; if in none, the key that they have instead. A
    key that cannot be saved is refused."""
    require(actor, "read")
    validated(request_of(DuplicateProtection), {"enabled": True, "key": key})
    page = await gateway.store.history.page(HistoryFilter(webhook_id=webhook_id), LAST)
    stories = await gateway.store.history.brief([row.invocation.id for row in page.rows], LARGEST_READ)
    of_header = place_of_key(key)[0] == "header"
    stories.sort(key=lambda story: story.invocation.id, reverse=True)
    calls = [story.invocation for story in stories if of_header or story.invocation.body is not None]
    values = [value for call in calls if (value := _value(call, key))]
    return TriedKey(
        calls=len(calls),
        found=len(values),
        example=values[0][:LONGEST] if values else None,
        instead=None if values else _instead(calls, key),
    )


class TryConditionsRequest(Shape):
    """The rows to try; left out, the saved ones."""

    conditions: Annotated[list[ConditionRowRequest], Field(max_length=MOST_ROWS)] | None = None


async def conditions(
    gateway: Gateway, actor: Actor, webhook_id: str, request: TryConditionsRequest
) -> TriedConditions:
    """How many of a webhook's last 1,000 calls, accepted and filtered ones, would not start with these conditions, and which. They
    are judged as when they come in; nothing is saved or started."""
    require(actor, "read")
    webhook, saved = served(gateway, webhook_id), await stored(gateway, webhook_id)
    rows = (
        saved.settings.conditions
        if request.conditions is None
        else [row.setting() for row in request.conditions]
    )
    tried = changed(webhook, conditions=conditions_of(rows, webhook.mask, webhook.provider), duplicates=None)
    judged = not_judged = would_not = 0
    not_starting: list[NotStarting] = []
    before: str | None = None
    read = 0
    while judged + not_judged < MOST_JUDGED and read < MOST_READ:
        limit = min(PORTION, MOST_JUDGED - judged - not_judged)
        portion = await gateway.store.history.taken(webhook_id, before, limit, PORTION_BYTES)
        if not portion:
            break
        before = portion[-1].id
        read += sum(len(call.body or b"") for call in portion)
        for call in portion:
            await asyncio.sleep(0)  # callers are answered while many are judged
            verdict = None if call.body_is_gone or call.body_is_cut else _judged(tried, call)
            if verdict is None or verdict.outcome not in ("accepted", "filtered"):
                not_judged += 1
                continue
            judged += 1
            if verdict.outcome == "filtered":
                would_not += 1
                if len(not_starting) < MOST_NAMED:
                    event = sender_event_of(gateway, call)
                    not_starting.append(
                        NotStarting(call.id, Time(call.received_at), call.code, event, verdict.detail)
                    )
    calls = f"{judged:,} call{'' if judged == 1 else 's'}"
    told = [f"{would_not:,} of the last {calls} would not have started."]
    if not_judged:
        told.append(f"{not_judged:,} more cannot be judged: their bodies are not kept, or not read any more.")
    told += about_rows(saved.settings.authentication, saved.resolved, rows, webhook.mask.hides)
    if rows and webhook.method != "hmac":
        told.append("No signature covers what the rows read: whoever may call can send any value.")
    return TriedConditions(
        calls=judged,
        would_not_start=would_not,
        not_judged=not_judged,
        in_words=told,
        not_starting=not_starting,
    )


async def seen(gateway: Gateway, actor: Actor, webhook_id: str) -> SeenValues:
    """The most frequent events of a webhook's last hundred calls, and who has caused them: to make conditions of."""
    require(actor, "read")
    webhook = served(gateway, webhook_id)
    preset = presets.load().get(webhook.provider)
    events, actors = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for call in await gateway.store.history.taken(webhook_id, None, PORTION, PORTION_BYTES):
        events["event", sender_event_of(gateway, call)] += 1
        if preset is None or not preset.actor:
            continue
        payload = payload_of(call)
        places = ((path, walk_members(payload.members, parse_path(path))) for path in preset.actor if payload)
        if there := next(((path, value) for path, value in places if value not in (None, b"null")), None):
            actors[there[0], as_text(there[1] or b"")] += 1

    def most(counted: Counter[tuple[str, str]]) -> list[SeenValue]:
        whole = [pair for pair in counted.most_common() if pair[0][1] and len(pair[0][1]) < LONGEST]
        return [SeenValue(of, value, calls) for (of, value), calls in whole[:MOST_SEEN]]

    return SeenValues(events=most(events), actors=most(actors))


def _judged(webhook: Webhook, invocation: Invocation) -> Verdict:
    call = invocation.as_call()
    call.from_proxy = True  # a traceparent that was kept came from a proxy that is trusted
    return admit_fetched(webhook, call, ("recorded", True, ""))


def _value(invocation: Invocation, key: str) -> str | None:
    kind, name = place_of_key(key)
    if kind == "header":
        header = invocation.as_call().first_header(name.lower().encode())
        return header.decode("utf-8", "replace") if header else None
    payload = payload_of(invocation)
    member = walk_members(payload.members, parse_path(name)) if payload else None
    return None if member is None else as_text(member)


def _instead(calls: list[Invocation], key: str) -> str | None:
    """The header of this name if a path was written, the path if a header was written."""
    kind, divider, name = key.partition(":")
    name = name if divider else kind
    for other in (f"header:{name}", name):
        if not path_problem(name) and any(_value(call, other) for call in calls):
            return other
    return None
