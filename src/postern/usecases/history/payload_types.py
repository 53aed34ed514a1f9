"""The types of a webhook's payload, from the calls that were recorded."""

import asyncio

import msgspec

from postern.core.access.accounts import Actor
from postern.core.history.invocation import HistoryFilter, Invocation, payload_of
from postern.core.problems import invalid
from postern.usecases.history.views.requests import PayloadTypes
from postern.usecases.runtime.gateway import Gateway, require
from postern.usecases.stored_webhook import stored
from postern.workflows.scaffold import module_of_types
from postern.workflows.shapes import JsonShape

CALLS = 100
MOST_CALLS = 1_000
LARGEST_BODY = 512 * 1024
"""A larger one is not read."""
MOST_BYTES = 32 * 1024 * 1024
"""Of all bodies together; then what has been read is enough."""
MOST_LOOKED_AT = 5_000
"""Calls, where most of them have no body that is kept and can be read."""
AT_ONCE = 50


async def payload_types(gateway: Gateway, actor: Actor, webhook_id: str, calls: int = CALLS) -> PayloadTypes:
    """TypedDicts, as Python source, for what a webhook's payloads hold, from its newest recorded calls: what
    is there in some of them only, null, and what is one thing or another."""
    require(actor, "read")
    if not 1 <= calls <= MOST_CALLS:
        raise invalid("calls", f"1 to {MOST_CALLS}")
    webhook = await stored(gateway, webhook_id)
    shape, read, looked_at, size, before = JsonShape(), 0, 0, 0, None
    while read < calls and size < MOST_BYTES and looked_at < MOST_LOOKED_AT:
        page = await gateway.store.history.page(
            HistoryFilter(webhook_id=webhook_id, code="accepted"), AT_ONCE, before
        )
        ids = [row.invocation.id for row in page.rows][: calls - read]
        looked_at += len(ids)
        stories = await gateway.store.history.brief(ids, LARGEST_BODY)
        found = [story.invocation for story in stories]
        # The shape is the same whatever comes first, and reading goes on beside the calls of senders.
        read += await asyncio.to_thread(_add, shape, found)
        size += sum(len(one.body or b"") for one in found)
        before = page.next_before
        if before is None:
            break
    return PayloadTypes(
        webhook_id=webhook_id,
        name=webhook.name,
        calls=read,
        source=module_of_types(webhook_id, shape, read),
    )


def _add(shape: JsonShape, invocations: list[Invocation]) -> int:
    """How many could be read."""
    read = 0
    for invocation in invocations:
        payload = payload_of(invocation)
        if payload is None:
            continue
        try:
            shape.add(msgspec.json.decode(payload.text))
        except (msgspec.DecodeError, RecursionError):
            continue
        read += 1
    return read
