"""Webhooks over HTTP: their settings and secrets, the bin, test calls, running a schedule, holding deliveries, recording an
event and beginning a workflow from it, and rejected calls that would pass now."""

from typing import Annotated

from pydantic import Field

from postern.core.access.accounts import Actor
from postern.core.documents import Patch
from postern.core.webhooks.listing import Sort
from postern.surfaces.rest.framework.operation import JSON, Limit, OnePage, Rows, ShortText
from postern.usecases import schedules
from postern.usecases.calls import readmission
from postern.usecases.deliveries import holds
from postern.usecases.history import samples
from postern.usecases.history.samples import CALLS, MOST_CALLS
from postern.usecases.runtime.gateway import Gateway
from postern.usecases.sending_again import asking
from postern.usecases.shapes import WHOLE, Shape
from postern.usecases.signatures import sending
from postern.usecases.webhooks import bin, listing, many, trying, webhooks
from postern.usecases.webhooks.listing import WebhookFilterRequest
from postern.usecases.webhooks.views import Webhook, Webhooks

row = Rows("Webhooks")

EXAMPLE = {
    "name": "Orders",
    "authentication": {"method": "hmac", "provider": "shopify", "secret": "the secret that Shopify shows"},
    "fieldMapping": {"fieldOne": "order.number", "fieldTwo": "customer.email"},
}

MANY = {"action": "tag", "tags": ["europe"], "filter": {"folder": "Shops"}}

CONDITIONS = {"conditions": [{"of": "order.total", "is": "greater", "values": ["100"]}]}

TEST_CALL = {"event": "orders/create", "changes": {"customer.email": "ada@example.com"}}

PATCH = {
    kind: {"$ref": "#/components/schemas/WebhookPatch"} for kind in (JSON, "application/merge-patch+json")
}


class WebhookQuery(OnePage, WebhookFilterRequest):
    sort: Sort = Field(
        default="created",
        description="created: the newest first; failing: those that cannot be served, then those with an incident; name, folder: A to Z; last_call: the "
        "last called; last_day: those with most calls in the last 24 hours.",
    )
    reverse: bool = Field(default=False, description="The other way round.")


class BinQuery(OnePage):
    limit: Limit = 200


class PromoteQuery(Shape):
    now: bool = Field(
        default=False, description="Even if calls may still carry the main secret: they are rejected then."
    )


class AnnouncedQuery(Shape):
    invocation_id: ShortText | None = Field(
        default=None, description="The call that announced it. Needed where callers announced different ones."
    )


@row("GET", "/webhooks", "List webhooks")
async def list_webhooks(gateway: Gateway, actor: Actor, query: WebhookQuery) -> Webhooks:
    """The webhooks that match, the newest first or in another order."""
    return await listing.listing(
        gateway,
        actor,
        query.limit,
        query.cursor,
        wanted=query.wanted(),
        sort=query.sort,
        reverse=query.reverse,
    )


row.of(
    webhooks.create, "create_webhook", "POST", "/webhooks", "Make a webhook",
    status=201, place="webhooks", idempotent=True, versioned=True, body_example=EXAMPLE,
)  # fmt: skip
row.of(
    many.change, "change_many_webhooks", "POST", "/webhooks/many", "Change many webhooks",
    refuses=("conflict",), body_example=MANY,
)  # fmt: skip
row.of(webhooks.show, "show_webhook", "GET", "/webhooks/{webhook_id}", "Show a webhook", versioned=True)
row.of(
    webhooks.change, "change_webhook", "PATCH", "/webhooks/{webhook_id}", "Change a webhook",
    versioned=True, refuses=("conflict",), body=Patch, body_schema=PATCH,
)  # fmt: skip
row.of(webhooks.remove, "delete_webhook", "DELETE", "/webhooks/{webhook_id}", "Delete a webhook", status=204)


@row("POST", "/webhooks/{webhook_id}/enable", "Enable a webhook", versioned=True, refuses=("conflict",))
async def enable_webhook(
    gateway: Gateway, actor: Actor, webhook_id: str, seen_version: int | None
) -> Webhook:
    return await webhooks.switch(gateway, actor, webhook_id, True, seen_version)


@row("POST", "/webhooks/{webhook_id}/disable", "Disable a webhook", versioned=True, refuses=("conflict",))
async def disable_webhook(
    gateway: Gateway, actor: Actor, webhook_id: str, seen_version: int | None
) -> Webhook:
    return await webhooks.switch(gateway, actor, webhook_id, False, seen_version)


row.of(
    webhooks.promote, "promote_secret", "POST", "/webhooks/{webhook_id}/promote",
    "Make the second secret the main one", query=PromoteQuery, versioned=True, refuses=("conflict",),
)  # fmt: skip
row.of(
    webhooks.adopt, "adopt_secret", "POST", "/webhooks/{webhook_id}/adopt-secret",
    "Take the secret that a sender announced", query=AnnouncedQuery, versioned=True, refuses=("conflict",),
)  # fmt: skip
row.of(bin.listing, "list_bin", "GET", "/bin", "List deleted webhooks", query=BinQuery)
row.of(
    bin.restore, "restore_webhook", "POST", "/bin/{webhook_id}/restore", "Restore a deleted webhook",
    versioned=True,
)  # fmt: skip
row.of(
    bin.delete_for_good, "delete_for_good", "DELETE", "/bin/{webhook_id}", "Delete a webhook for good",
    status=204,
)  # fmt: skip
row.of(
    sending.samples, "list_test_calls", "GET", "/webhooks/{webhook_id}/test-calls",
    "List the test calls that can be sent",
)  # fmt: skip
row.of(
    sending.send, "send_test_calls", "POST", "/webhooks/{webhook_id}/test-calls", "Send a test call",
    refuses=("conflict", "temporarily_unavailable"), body_example=TEST_CALL,
)  # fmt: skip
row.of(
    schedules.run_now, "run_schedule", "POST", "/webhooks/{webhook_id}/schedule/run", "Fetch now",
    refuses=("conflict",),
)  # fmt: skip
row.of(
    schedules.resume, "resume_schedule", "POST", "/webhooks/{webhook_id}/schedule/resume", "Go on after a pause",
    versioned=True, refuses=("conflict",),
)  # fmt: skip
row.of(holds.hold, "hold_webhook", "POST", "/webhooks/{webhook_id}/hold", "Hold")
row.of(holds.release, "release_webhook", "POST", "/webhooks/{webhook_id}/release", "End the hold")
row.of(holds.drop, "drop_held", "POST", "/webhooks/{webhook_id}/drop", "Drop what is held")


class RecordQuery(Shape):
    seconds: float = Field(default=600, ge=1, le=86_400, description="How long to wait for it.")


class PayloadTypesQuery(Shape):
    calls: int = Field(
        default=CALLS,
        ge=1,
        le=MOST_CALLS,
        description="How many of the newest recorded calls are read at most.",
    )


class NewWorkflowQuery(Shape):
    name: str = Field(min_length=1, max_length=80, description="What to call it.")


row.of(
    samples.arm, "record_events", "POST", "/webhooks/{webhook_id}/record-events", "Record the next event",
    query=RecordQuery,
)  # fmt: skip
row.of(
    samples.disarm, "stop_recording", "DELETE", "/webhooks/{webhook_id}/record-events", "Stop waiting for an event",
    status=204,
)  # fmt: skip
row.of(
    samples.arm, "record_all_events", "POST", "/record-events", "Record every webhook's next event",
    query=RecordQuery,
)  # fmt: skip
row.of(
    samples.disarm, "stop_recording_all", "DELETE", "/record-events", "Stop waiting for every webhook's event"
)
row.of(samples.sample, "show_sample", "GET", "/webhooks/{webhook_id}/sample", "Show the recorded event")
row.of(
    samples.new_workflow, "new_workflow", "GET", "/webhooks/{webhook_id}/new-workflow",
    "Begin a workflow from the recorded event", query=NewWorkflowQuery, media_type="text/x-python; charset=utf-8", refuses=("conflict",),
)  # fmt: skip
row.of(
    samples.payload_types, "show_payload_types", "GET", "/webhooks/{webhook_id}/payload-types",
    "Show the types of a webhook's payload", query=PayloadTypesQuery,
)  # fmt: skip
row.of(
    samples.forget, "forget_sample", "DELETE", "/webhooks/{webhook_id}/sample", "Forget the recorded event",
    status=204,
)  # fmt: skip


row.of(
    trying.conditions, "try_conditions", "POST", "/webhooks/{webhook_id}/try-conditions",
    "Try conditions on recorded calls", level="read", body_example=CONDITIONS,
)  # fmt: skip
row.of(
    asking.send_again, "send_again", "POST", "/webhooks/{webhook_id}/send-again",
    "Ask the sender to send again", body=asking.SendAgainRequest, refuses=("conflict",),
)  # fmt: skip


class AdmitAllRequest(Shape):
    expected: Annotated[int, Field(ge=0), WHOLE] | None = Field(
        default=None, description="How many they were: refused where it is another number now."
    )


row.of(
    readmission.recheck, "list_readmissible", "GET", "/webhooks/{webhook_id}/readmissible",
    "List rejected calls that would pass now",
)  # fmt: skip
row.of(
    readmission.admit_all, "admit_readmissible", "POST", "/webhooks/{webhook_id}/readmissible",
    "Admit all rejected calls that pass now", body=AdmitAllRequest, refuses=("conflict",),
)  # fmt: skip
