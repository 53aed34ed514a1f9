"""Record Events: keeps the next event of a webhook, so that a workflow can be written and tried with it."""

import asyncio
from contextlib import suppress

import msgspec

from postern.core.access.accounts import Actor
from postern.core.access.audit import AuditEntry
from postern.core.documents import Document
from postern.core.history.invocation import NO_PAYLOAD, HistoryFilter, Invocation, payload_of
from postern.core.history.sample import Sample, event_in, sample_of, variables
from postern.core.problems import Refused, invalid
from postern.usecases.access.audit import noted
from postern.usecases.answers import Time, iso
from postern.usecases.history.history import recorded
from postern.usecases.history.views import requests as views
from postern.usecases.history.views.requests import PayloadTypes
from postern.usecases.runtime.gateway import Gateway, require
from postern.usecases.stored_webhook import stored
from postern.workflows.scaffold import file_name, module_of_types, skeleton
from postern.workflows.shapes import JsonShape

ARMED_FOR = 600.0
LONGEST_ARMED = 86_400.0
EVERY_WEBHOOK = "every webhook"


async def arm(
    gateway: Gateway, actor: Actor, webhook_id: str | None = None, seconds: float = ARMED_FOR
) -> views.Recording:
    """The next accepted call, or replay, of the webhook is kept as the sample from which a workflow's
    variables are shown. Where none is named, each webhook waits for its own."""
    require(actor, "write")
    if not 1 <= seconds <= LONGEST_ARMED:
        raise invalid("seconds", "1 second to one day")
    until = gateway.clock() + seconds
    note = noted(gateway, actor, "recording armed", webhook_id or EVERY_WEBHOOK, until=iso(until))
    webhooks = await _set(gateway, webhook_id, until, note)
    return views.Recording(webhooks=webhooks, recording_until=Time(until))


async def disarm(gateway: Gateway, actor: Actor, webhook_id: str | None = None) -> views.NotRecording:
    """Stop waiting for an event to record."""
    require(actor, "write")
    note = noted(gateway, actor, "recording disarmed", webhook_id or EVERY_WEBHOOK)
    webhooks = await _set(gateway, webhook_id, None, note)
    return views.NotRecording(webhooks=webhooks, recording_until=None)


async def _set(gateway: Gateway, webhook_id: str | None, until: float | None, note: AuditEntry) -> int:
    if webhook_id is not None:
        await stored(gateway, webhook_id)
    concerned = await gateway.store.samples.arm(webhook_id, until, note)
    await gateway.runtime.directory.refresh()
    return concerned


async def sample(gateway: Gateway, actor: Actor, webhook_id: str) -> views.Sample:
    """The recorded event, and its variables with an example and what to write for each; ``event`` is null
    where nothing was recorded yet, or a number in it is too large to be read."""
    require(actor, "read")
    await stored(gateway, webhook_id)
    kept = await gateway.store.samples.get(webhook_id) or Sample(webhook_id)
    is_armed = kept.armed_until is not None and kept.armed_until > gateway.clock()
    event = None if kept.trigger is None else event_in(kept.trigger)
    return views.Sample(
        webhook_id=webhook_id,
        recording_until=Time.maybe(kept.armed_until) if is_armed else None,
        recorded_at=Time.maybe(kept.stored_at),
        invocation_id=kept.invocation_id,
        event=event,
        variables=[] if event is None else variables(event),
    )


async def forget(gateway: Gateway, actor: Actor, webhook_id: str) -> None:
    """Delete the recorded event: it holds a whole payload, and retention leaves it alone."""
    require(actor, "write")
    await stored(gateway, webhook_id)
    note = noted(gateway, actor, "sample forgotten", webhook_id)
    if not await gateway.store.samples.forget(webhook_id, note):
        raise Refused("not_found", "nothing has been recorded for this webhook")


async def new_workflow(gateway: Gateway, actor: Actor, name: str, webhook_id: str) -> str:
    """A typed beginning of a workflow for this webhook, as Python source for the embedded engine: its Webhook
    ID filled in, the fields typed as they came in the recorded event, or in the newest call where none was
    recorded. Nothing is saved."""
    require(actor, "read")
    return skeleton(name, await _event(gateway, actor, webhook_id), webhook_id)


async def workflow_of_call(gateway: Gateway, actor: Actor, invocation_id: str) -> tuple[str, str]:
    """The same from one recorded call, with the values that the mapping finds in it now: the file's name and the
    source."""
    require(actor, "read")
    event = await _event_of_call(gateway, invocation_id)
    webhook = gateway.runtime.directory.by_id(event["webhookId"])
    name = webhook.name if webhook else "my workflow"
    return file_name(name), skeleton(name, event, event["webhookId"])


async def _event(gateway: Gateway, actor: Actor, webhook_id: str) -> Document:
    kept = await sample(gateway, actor, webhook_id)
    if kept.event is not None:
        return kept.event
    if kept.recorded_at is not None:
        raise Refused("conflict", f"the recorded event holds {views.TOO_LARGE}: record another one")
    accepted = HistoryFilter(webhook_id=webhook_id, code="accepted")
    newest = (await gateway.store.history.page(accepted, 1)).rows
    if not newest:
        raise Refused("conflict", "no accepted call of this webhook is kept: begin when one has come")
    return await _event_of_call(gateway, newest[0].invocation.id)


async def _event_of_call(gateway: Gateway, invocation_id: str) -> Document:
    story = await recorded(gateway, invocation_id)
    payload = payload_of(story.invocation)
    if payload is None or not story.deliveries:
        raise Refused("conflict", f"this call started nothing, or {NO_PAYLOAD}")
    webhook_id = story.invocation.webhook_id
    webhook = gateway.runtime.directory.by_id(webhook_id)
    fields = webhook.mapping.apply(payload)[0] if webhook else story.deliveries[-1].fields
    event = event_in(sample_of(webhook_id, invocation_id, fields, payload.text))
    if event is None:
        raise Refused("conflict", f"its payload holds {views.TOO_LARGE}")
    return event


CALLS = 100
MOST_CALLS = 1_000
LARGEST_BODY = 512 * 1024
"""Bytes. Larger bodies are not read."""
MOST_BYTES = 32 * 1024 * 1024
"""Bytes of all bodies together. After them no more is read."""
MOST_LOOKED_AT = 5_000
"""Calls. Many may have no body that can be read."""
CALLS_AT_ONCE = 50


async def payload_types(gateway: Gateway, actor: Actor, webhook_id: str, calls: int = CALLS) -> PayloadTypes:
    """TypedDicts, as Python source, for what a webhook's payloads hold, from its newest recorded calls: what
    is there in some of them only, null, and what is one thing or another."""
    require(actor, "read")
    if not 1 <= calls <= MOST_CALLS:
        raise invalid("calls", f"1 to {MOST_CALLS}")
    webhook = await stored(gateway, webhook_id)
    shape, read, looked_at, size, before = JsonShape(), 0, 0, 0, None
    criteria = HistoryFilter(webhook_id=webhook_id, code="accepted")
    while read < calls and size < MOST_BYTES and looked_at < MOST_LOOKED_AT:
        page = await gateway.store.history.page(criteria, CALLS_AT_ONCE, before)
        ids = [row.invocation.id for row in page.rows][: calls - read]
        looked_at += len(ids)
        stories = await gateway.store.history.brief(ids, LARGEST_BODY)
        invocations = [story.invocation for story in stories]
        # In a thread, so that the calls of senders go on. The shape does not depend on the order.
        read += await asyncio.to_thread(_add, shape, invocations)
        size += sum(len(item.body or b"") for item in invocations)
        before = page.next_before
        if before is None:
            break
    return PayloadTypes(
        webhook_id=webhook_id, name=webhook.name, calls=read, source=module_of_types(webhook_id, shape, read)
    )


def _add(shape: JsonShape, invocations: list[Invocation]) -> int:
    """Returns how many could be read."""
    read = 0
    for payload in filter(None, map(payload_of, invocations)):
        with suppress(msgspec.DecodeError, RecursionError):
            shape.add(msgspec.json.decode(payload.text))
            read += 1
    return read
