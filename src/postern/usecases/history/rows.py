"""Rows of lists: besides a call's outcome they show its event and its mapped values."""

from functools import cache

from msgspec.structs import replace

from postern import presets
from postern.core.calls.event import event_name
from postern.core.deliveries.delivery import FIELD_NAMES
from postern.core.history.invocation import Invocation, Story, payload_of
from postern.usecases.runtime.gateway import Gateway
from postern.usecases.summary import InvocationSummary, summary_of

LARGEST_READ = 16 * 1024
"""Lists do not read larger bodies."""
LONGEST = 80


async def rows_of(gateway: Gateway, stories: list[Story]) -> list[InvocationSummary]:
    """Summaries with the name of the webhook, that of the event (from the sender's preset or a usual header), and the values."""
    ids = [story.invocation.id for story in stories]
    kept = {loaded.invocation.id: loaded for loaded in await gateway.store.history.brief(ids, LARGEST_READ)}
    return [_row(gateway, kept.get(story.invocation.id, story), summary_of(story)) for story in stories]


def _row(gateway: Gateway, story: Story, summary: InvocationSummary) -> InvocationSummary:
    webhook = gateway.runtime.directory.by_id(summary.webhook_id)
    fields = story.deliveries[-1].fields if story.deliveries else fields_of(gateway, story.invocation)
    return replace(
        summary,
        webhook_name=None if webhook is None else webhook.name,
        event=sender_event_of(gateway, story.invocation),
        fields={name: _short(fields[name]) for name in FIELD_NAMES if fields.get(name)},
    )


def fields_of(gateway: Gateway, invocation: Invocation) -> dict[str, str]:
    """The values of a call that started nothing, as the mapping finds them now. So a rejected call is found like any other."""
    webhook = gateway.runtime.directory.by_id(invocation.webhook_id)
    if webhook is None or invocation.outcome not in ("rejected", "duplicate", "filtered"):
        return {}
    payload = payload_of(invocation)
    return {} if payload is None else webhook.mapping.apply(payload)[0]


def sender_event_of(gateway: Gateway, invocation: Invocation) -> str:
    """The sender's name of the event; empty if the call does not say."""
    webhook = gateway.runtime.directory.by_id(invocation.webhook_id)
    places = presets.event_places(webhook.provider if webhook else "")
    call = invocation.as_call()
    return _short(event_name(places, call.first_header, cache(lambda: payload_of(invocation))))


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
