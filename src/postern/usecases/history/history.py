"""Reads recorded calls, and replays one."""

import re

import msgspec
from msgspec.structs import replace

from postern.core.access.accounts import Actor
from postern.core.access.audit import AuditEntry
from postern.core.calls.content import Payload
from postern.core.calls.paths import as_text, parse_path, walk_members
from postern.core.documents import DAMAGED
from postern.core.history.failures import groups_of
from postern.core.history.invocation import NO_PAYLOAD, HistoryFilter, Invocation, Story, payload_of
from postern.core.history.marks import EditedFrom
from postern.core.history.replay import Values
from postern.core.history.sample import sample_of
from postern.core.problems import Refused, existing, invalid
from postern.core.webhooks.bounds import mapped_path
from postern.core.webhooks.webhook import Webhook
from postern.identity import time_of
from postern.usecases.access.audit import noted
from postern.usecases.answers import Listing, Time, page_size
from postern.usecases.history.code import WRITERS, Language, repeated
from postern.usecases.history.rows import rows_of, sender_event_of
from postern.usecases.history.views import calls as views
from postern.usecases.history.views.requests import Preview, RecordedRequest, request_of
from postern.usecases.runtime.gateway import Gateway, require
from postern.usecases.runtime.turns import awaited
from postern.usecases.summary import InvocationSummary

MOST_FAILURES = 500
"""The newest failed calls that are grouped by their errors."""

_HARD_TO_READ = re.compile(rb"\\u[dD][89a-fA-F]|\d{19}|\d[eE][+-]?\d{3}")


async def listing(
    gateway: Gateway, actor: Actor, criteria: HistoryFilter, limit: int = 50, cursor: str | None = None
) -> Listing[InvocationSummary]:
    """The calls that a filter names, newest first, rejected ones too."""
    require(actor, "read")
    page = await gateway.store.history.page(criteria, page_size(limit), cursor)
    return Listing(items=await rows_of(gateway, page.rows), next_cursor=page.next_before)


async def count(gateway: Gateway, actor: Actor, criteria: HistoryFilter) -> views.Count:
    """How many calls a filter finds, up to 10,000; where no index helps, among the newest ones."""
    require(actor, "read")
    counted = await gateway.store.history.count(criteria)
    return views.Count(
        calls=counted.calls,
        or_more=counted.or_more,
        looked_back_to=None if counted.back_to is None else Time(time_of(counted.back_to)),
    )


async def failures(gateway: Gateway, actor: Actor, criteria: HistoryFilter) -> views.Failures:
    """The errors with which several of the newest failed calls failed alike, numbers and ids in them left out."""
    require(actor, "read")
    page = await gateway.store.history.page(replace(criteria, status="failed"), MOST_FAILURES)
    failed = (
        (row.invocation.webhook_id, row.deliveries[-1].error, Time(row.invocation.received_at))
        for row in page.rows
        if row.deliveries and row.deliveries[-1].state == "failed"
    )
    groups = [
        views.FailedAlike(group.error, group.count, Time(group.since), list(group.webhook_ids))
        for group in groups_of(failed)
    ]
    return views.Failures(items=groups, or_more=page.next_before is not None)


async def oldest(gateway: Gateway, actor: Actor) -> Time | None:
    """When the oldest call came that is kept."""
    require(actor, "read")
    first_id = await gateway.store.history.oldest()
    return None if first_id is None else Time(time_of(first_id))


async def show(gateway: Gateway, actor: Actor, invocation_id: str) -> views.Invocation:
    """One call's whole story: what came (headers masked), what was decided and why with every step that led
    there, what was started and how each attempt went."""
    require(actor, "read")
    story = await recorded(gateway, invocation_id)
    local_runs = await gateway.store.listeners.of_call(invocation_id)
    marks = await gateway.store.marks.of(invocation_id)
    waits = {
        delivery.key: await awaited(gateway, delivery)
        for delivery in story.deliveries
        if delivery.waits_for_turn
    }
    return views.invocation_of(story, _payload(story), local_runs, marks, waits)


async def replay(
    gateway: Gateway,
    actor: Actor,
    invocation_id: str,
    fields: Values = "recorded",
    emission: int | None = None,
) -> views.Replayed:
    """Start the workflow again with the recorded payload, from its first step: steps that had finished run
    once more. The four fields are as they were recorded when the call was first started, or as the mapping
    finds them now. A filtered call is started so, for the first time. To replay another call that was never started is
    refused, and the detail says what to do instead."""
    # A page says which start of the call it asks for, the ``emission``: two such pages start one. So do two programs that
    # ask for the first one at once.
    require(actor, "write")
    story = await recorded(gateway, invocation_id)
    webhook = replayable(gateway, story)
    payload = payload_of(story.invocation)
    if payload is None:
        raise Refused("conflict", NO_PAYLOAD)
    mapped = fields_of_replay(webhook, story, payload, fields)
    note = noted(gateway, actor, "invocation replayed", invocation_id)
    expected = emission or (None if story.deliveries else 1)
    return await started_again(
        gateway, webhook, invocation_id, mapped, payload, by=actor.name, note=note, expected=expected
    )


async def started_again(
    gateway: Gateway,
    webhook: Webhook,
    invocation_id: str,
    fields: dict[str, str],
    payload: Payload,
    *,
    by: str,
    note: AuditEntry,
    made: tuple[Invocation, EditedFrom] | None = None,
    expected: int | None = None,
) -> views.Replayed:
    """``made``: the invocation, if it is an edited copy that has to be recorded too. ``expected``: which emission it is to be."""
    now, sample = gateway.clock(), None
    if webhook.recording_until > now:
        sample = sample_of(webhook.id, invocation_id, fields, payload.text)
    start = webhook.started_again(invocation_id, payload, fields)
    delivery = await gateway.store.emissions.replay(start, now, by, sample, note, made, expected)
    gateway.runtime.starts_due(webhook.lane)
    gateway.runtime.live.touch(invocation_id)
    return views.Replayed(invocation_id=invocation_id, delivery=views.delivery_of(delivery))


def replayable(gateway: Gateway, story: Story) -> Webhook:
    """The webhook of a call that can be started again. Raises ``Refused``."""
    first = story.deliveries[0] if story.deliveries else None
    if first is None and story.invocation.outcome != "filtered":
        raise Refused("conflict", _never_started(story.invocation))
    if first is not None and first.is_damaged:
        raise Refused("conflict", DAMAGED)
    if first is not None and first.is_divided:
        detail = "this call brought an array, and each element was started as a call of its own; replay those"
        raise Refused("conflict", detail)
    webhook = gateway.runtime.directory.by_id(story.invocation.webhook_id)
    if webhook is None:
        raise Refused("conflict", "its webhook has been deleted")
    if not webhook.enabled:
        raise Refused("conflict", "its webhook is disabled and starts nothing; enable it first")
    return webhook


def fields_of_replay(webhook: Webhook, story: Story, payload: Payload, fields: Values) -> dict[str, str]:
    """The values of one more start. A filtered call has none that were recorded."""
    is_recorded = fields == "recorded" and story.deliveries
    return story.deliveries[0].fields if is_recorded else webhook.mapping.apply(payload)[0]


def _never_started(invocation: Invocation) -> str:
    """Why there is nothing to replay, and what to do instead."""
    match invocation.outcome:
        case "duplicate":
            return f"this call is a duplicate and started nothing; replay the first one, {invocation.duplicate_of}"
        case "rejected":
            instead = "fix what was wrong, then check it again and admit it"
            return f"this call was rejected ({invocation.code}) and started nothing; {instead}"
        case "handshake":
            return "this call was a set-up handshake, which starts nothing"
        case "accepted" | "filtered" | "edited":
            return "retention has taken what this call started"


async def request(gateway: Gateway, actor: Actor, invocation_id: str) -> RecordedRequest:
    """The recorded call to the byte, for a program that takes the call in again: method, path, query, headers
    and body. Signatures are there; credentials are masked."""
    require(actor, "read")
    return request_in(gateway, await recorded(gateway, invocation_id))


def request_in(gateway: Gateway, story: Story) -> RecordedRequest:
    return request_of(story.invocation, story.deliveries, sender_event_of(gateway, story.invocation))


async def as_code(gateway: Gateway, actor: Actor, invocation_id: str, language: Language = "curl") -> str:
    """The recorded call to paste, byte for byte: for curl in a POSIX shell, or in Python, with placeholders where its
    secrets were."""
    require(actor, "read")
    invocation = (await recorded(gateway, invocation_id)).invocation
    return WRITERS[language](repeated(gateway.site.base_url, invocation))


async def preview(gateway: Gateway, actor: Actor, invocation_id: str, paths: dict[str, str]) -> Preview:
    """Show what these paths would take out of a recorded call. None where there is nothing; a path that is none is
    refused by name."""
    require(actor, "read")
    invocation = (await recorded(gateway, invocation_id)).invocation
    payload = payload_of(invocation)
    values: dict[str, str | None] = {}
    for name, path in paths.items():
        try:
            mapped_path(path)
        except ValueError as error:
            raise invalid(f"fieldMapping.{name}", str(error)) from None
        value = walk_members(payload.members, parse_path(path)) if payload is not None else None
        values[name] = None if value is None else as_text(value)
    return msgspec.convert(values, Preview)


async def recorded(gateway: Gateway, invocation_id: str) -> Story:
    """The call and what has become of it. Raises ``Refused``."""
    why_not = "there is no invocation with this id, or retention has taken it"
    return existing(await gateway.store.history.get(invocation_id), why_not)


def _payload(story: Story) -> msgspec.Raw | None:
    """The object that field paths go into, as its text: numbers keep every digit, and a large one need not be opened."""
    payload = payload_of(story.invocation) if story.invocation.is_event or story.deliveries else None
    if payload is None:
        return None
    try:
        if _HARD_TO_READ.search(payload.text):
            # Half a character or a huge number is right by JSON's grammar, but readers of the answer fail at it.
            msgspec.json.decode(payload.text)
        return msgspec.json.decode(payload.text, type=msgspec.Raw)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
