"""Webhooks over HTTP: their settings and secrets, the bin, test calls, running a schedule, holding deliveries."""

import re
from typing import Annotated

from pydantic import Field

from postern.core.access.accounts import Actor
from postern.core.documents import Patch
from postern.core.problems import Refused
from postern.core.webhooks.listing import Sort
from postern.surfaces.rest.framework.operation import JSON, Limit, OnePage, Rows, Text
from postern.usecases import schedules
from postern.usecases.answers import Listing, whole
from postern.usecases.deliveries import holds
from postern.usecases.deliveries.views import Dropped, Hold, Released
from postern.usecases.runtime.gateway import Gateway
from postern.usecases.shapes import Shape
from postern.usecases.signatures import sending
from postern.usecases.signatures.views import SampleCall, Sent
from postern.usecases.webhooks import bin, listing, many, webhooks
from postern.usecases.webhooks.listing import WebhookFilterRequest
from postern.usecases.webhooks.many import ManyRequest
from postern.usecases.webhooks.requests import WebhookRequest
from postern.usecases.webhooks.views import Bin, Many, ScheduleRun, Webhook, Webhooks

row = Rows("Webhooks")

EXAMPLE = {
    "name": "Orders",
    "authentication": {"method": "hmac", "provider": "shopify", "secret": "the secret that Shopify shows"},
    "fieldMapping": {"fieldOne": "order.number", "fieldTwo": "customer.email"},
}

MANY = {"action": "tag", "tags": ["europe"], "filter": {"folder": "Shops"}}

TEST_CALL = {"event": "orders/create", "changes": {"customer.email": "ada@example.com"}}

PATCH = {
    kind: {"$ref": "#/components/schemas/WebhookPatch"} for kind in (JSON, "application/merge-patch+json")
}


class WebhookQuery(OnePage, WebhookFilterRequest):
    sort: Annotated[
        Sort,
        Field(
            description="created: the newest first; failing: those with most trouble; name, folder: A to Z; last_call: the "
            "last called; last_day: those with most calls in the last 24 hours."
        ),
    ] = "created"
    reverse: Annotated[bool, Field(description="The other way round.")] = False


class BinQuery(OnePage):
    limit: Limit = 200


class AnnouncedQuery(Shape):
    invocation_id: Annotated[
        Text | None,
        Field(description="The call that announced it. Needed where callers announced different ones."),
    ] = None


async def seen_version(gateway: Gateway, actor: Actor, webhook_id: str, if_match: str | None) -> int | None:
    """What If-Match asks for, as the version that must still be the present one."""
    if if_match is None or if_match.strip() == "*":
        return None
    versions = [int(tag) for tag in re.findall(r'(?<!W/)"(\d{1,9})"', if_match)]
    if len(versions) == 1:
        return versions[0]
    present = (await webhooks.show(gateway, actor, webhook_id)).version
    if present not in versions:
        raise Refused("version_conflict")
    return present


@row("GET", "/webhooks", "List webhooks", level="read")
async def list_webhooks(gateway: Gateway, actor: Actor, query: WebhookQuery) -> Webhooks:
    return await listing.listing(
        gateway, actor, query.limit, query.cursor, query.wanted(), query.sort, query.reverse
    )


@row(
    "POST", "/webhooks", "Make a webhook",
    level="write", status=201, place="webhooks", idempotent=True, versioned=True, body_example=EXAMPLE,
)  # fmt: skip
async def create_webhook(gateway: Gateway, actor: Actor, body: WebhookRequest) -> Webhook:
    return await webhooks.create(gateway, actor, body)


@row(
    "POST", "/webhooks/many", "Change many webhooks",
    level="write", refuses=("conflict",), body_example=MANY,
)  # fmt: skip
async def change_many_webhooks(gateway: Gateway, actor: Actor, body: ManyRequest) -> Many:
    """Enable, disable, hold, release, tag, untag, move into a folder or delete those that are named, or all that match
    a filter. One with which it cannot be done does not keep the others from it: the answer says which and why."""
    return await many.change(gateway, actor, body)


@row("GET", "/webhooks/{webhook_id}", "Show a webhook", level="read", versioned=True)
async def show_webhook(gateway: Gateway, actor: Actor, webhook_id: str) -> Webhook:
    return await webhooks.show(gateway, actor, webhook_id)


@row(
    "PATCH", "/webhooks/{webhook_id}", "Change a webhook",
    level="write", versioned=True, refuses=("conflict",), body_schema=PATCH,
)  # fmt: skip
async def change_webhook(
    gateway: Gateway, actor: Actor, webhook_id: str, body: Patch, if_match: str | None
) -> Webhook:
    """A merge patch (RFC 7396): what is named is changed, null goes back to the default. Secrets that are
    not named stay."""
    version = await seen_version(gateway, actor, webhook_id, if_match)
    return await webhooks.change(gateway, actor, webhook_id, body, version)


@row("DELETE", "/webhooks/{webhook_id}", "Delete a webhook", level="write", status=204)
async def delete_webhook(gateway: Gateway, actor: Actor, webhook_id: str, if_match: str | None) -> None:
    """Into the bin: its URL answers 404, and for seven days it can be restored. Its history stays until retention
    takes it."""
    version = await seen_version(gateway, actor, webhook_id, if_match)
    await webhooks.remove(gateway, actor, webhook_id, version)


@row(
    "POST", "/webhooks/{webhook_id}/enable", "Enable a webhook",
    level="write", versioned=True, refuses=("conflict",),
)  # fmt: skip
async def enable_webhook(gateway: Gateway, actor: Actor, webhook_id: str, if_match: str | None) -> Webhook:
    version = await seen_version(gateway, actor, webhook_id, if_match)
    return await webhooks.switch(gateway, actor, webhook_id, True, version)


@row(
    "POST", "/webhooks/{webhook_id}/disable", "Disable a webhook",
    level="write", versioned=True, refuses=("conflict",),
)  # fmt: skip
async def disable_webhook(gateway: Gateway, actor: Actor, webhook_id: str, if_match: str | None) -> Webhook:
    version = await seen_version(gateway, actor, webhook_id, if_match)
    return await webhooks.switch(gateway, actor, webhook_id, False, version)


@row(
    "POST", "/webhooks/{webhook_id}/promote", "Make the second secret the main one",
    level="write", versioned=True, refuses=("conflict",),
)  # fmt: skip
async def promote_secret(gateway: Gateway, actor: Actor, webhook_id: str, if_match: str | None) -> Webhook:
    version = await seen_version(gateway, actor, webhook_id, if_match)
    return await webhooks.promote(gateway, actor, webhook_id, version)


@row(
    "POST", "/webhooks/{webhook_id}/adopt-secret", "Take the secret that a sender announced",
    level="write", versioned=True, refuses=("conflict",),
)  # fmt: skip
async def adopt_secret(
    gateway: Gateway, actor: Actor, webhook_id: str, query: AnnouncedQuery, if_match: str | None
) -> Webhook:
    """Some senders (Notion, Asana) announce their secret in the set-up handshake. What callers announce is kept aside,
    under authentication.announced, until its owner takes one; the others are forgotten then, as when another main secret
    is set."""
    version = await seen_version(gateway, actor, webhook_id, if_match)
    return await webhooks.adopt(gateway, actor, webhook_id, query.invocation_id, version)


@row("GET", "/bin", "List deleted webhooks", level="read")
async def list_bin(gateway: Gateway, actor: Actor, query: BinQuery) -> Bin:
    """What was deleted in the last seven days, the last one first. Their URLs answer 404."""
    return await bin.listing(gateway, actor, query.limit, query.cursor)


@row("POST", "/bin/{webhook_id}/restore", "Restore a deleted webhook", level="write", versioned=True)
async def restore_webhook(gateway: Gateway, actor: Actor, webhook_id: str) -> Webhook:
    """As it was: URL, settings, secrets, what it holds."""
    return await bin.restore(gateway, actor, webhook_id)


@row("DELETE", "/bin/{webhook_id}", "Delete a webhook for good", level="write", status=204)
async def delete_for_good(gateway: Gateway, actor: Actor, webhook_id: str) -> None:
    """Its settings and secrets are deleted now, and its URL is never given out again. Its history stays until
    retention takes it."""
    await bin.delete_for_good(gateway, actor, webhook_id)


@row("GET", "/webhooks/{webhook_id}/test-calls", "List the test calls that can be sent", level="read")
async def list_test_calls(gateway: Gateway, actor: Actor, webhook_id: str) -> Listing[SampleCall]:
    """The usual events of its sender, and what was recorded of it. The first is what is sent by itself."""
    return whole(await sending.samples(gateway, actor, webhook_id))


@row(
    "POST", "/webhooks/{webhook_id}/test-calls", "Send a test call",
    level="write", refuses=("conflict", "temporarily_unavailable"), body_example=TEST_CALL,
)  # fmt: skip
async def send_test_calls(gateway: Gateway, actor: Actor, webhook_id: str, body: sending.SendRequest) -> Sent:
    """Made as its sender would make it, with the stored secret, and sent to the public URL: it comes in, is recorded
    and starts workflows as any other call. The signature is not shown."""
    return await sending.send(gateway, actor, webhook_id, body)


@row("POST", "/webhooks/{webhook_id}/schedule/run", "Fetch now", level="write", refuses=("conflict",))
async def run_schedule(gateway: Gateway, actor: Actor, webhook_id: str) -> ScheduleRun:
    """Fetches once, now, and says what came of it."""
    return await schedules.run_now(gateway, actor, webhook_id)


@row(
    "POST", "/webhooks/{webhook_id}/schedule/resume", "Go on after a pause",
    level="write", versioned=True, refuses=("conflict",),
)  # fmt: skip
async def resume_schedule(gateway: Gateway, actor: Actor, webhook_id: str) -> Webhook:
    return await schedules.resume(gateway, actor, webhook_id)


@row("POST", "/webhooks/{webhook_id}/hold", "Hold", level="write")
async def hold_webhook(gateway: Gateway, actor: Actor, webhook_id: str, if_match: str | None) -> Hold:
    """Calls are recorded and answered as ever; their deliveries wait until somebody lets them go."""
    version = await seen_version(gateway, actor, webhook_id, if_match)
    return await holds.hold(gateway, actor, webhook_id, version)


@row("POST", "/webhooks/{webhook_id}/release", "End the hold", level="write")
async def release_webhook(gateway: Gateway, actor: Actor, webhook_id: str, if_match: str | None) -> Released:
    """What waited is due at once, the oldest first."""
    version = await seen_version(gateway, actor, webhook_id, if_match)
    return await holds.release(gateway, actor, webhook_id, version)


@row("POST", "/webhooks/{webhook_id}/drop", "Drop what is held", level="write")
async def drop_held(gateway: Gateway, actor: Actor, webhook_id: str) -> Dropped:
    """What waits will not be started, unless it is replayed. The hold goes on."""
    return await holds.drop(gateway, actor, webhook_id)
