"""Webhooks over HTTP."""

import re
from typing import Annotated, Any

from fastapi import Body, Query
from starlette.responses import JSONResponse, PlainTextResponse, Response

from postern.core.access.accounts import Actor
from postern.core.problems import Refused
from postern.surfaces.rest import webhook_shapes
from postern.surfaces.rest.pages import Cursor, Limit, one_page
from postern.surfaces.rest.table import PREFIX, Asking, IfMatch, Table
from postern.usecases.calls import readmission
from postern.usecases.deliveries import holds
from postern.usecases.history import samples
from postern.usecases.runtime.gateway import Gateway
from postern.usecases.schedules import schedules
from postern.usecases.webhooks import webhooks
from postern.usecases.webhooks.configuration import WebhookRequest

EXAMPLE = {
    "name": "Orders",
    "authentication": {"method": "hmac", "provider": "shopify", "secret": "the secret that Shopify shows"},
    "fieldMapping": {"fieldOne": "order.number", "fieldTwo": "customer.email"},
}

Search = Annotated[
    str | None, Query(max_length=200, description="Part of the name, or the whole id or short code.")
]


async def seen_version(gateway: Gateway, actor: Actor, webhook_id: str, if_match: str | None) -> int | None:
    """What If-Match asks for, as the version that must still be the present one."""
    if if_match is None or if_match.strip() == "*":
        return None
    versions = [int(tag) for tag in re.findall(r'(?<!W/)"(\d{1,9})"', if_match)]
    if len(versions) == 1:
        return versions[0]
    present: int = (await webhooks.show(gateway, actor, webhook_id))["version"]
    if present not in versions:
        raise Refused("version_conflict")
    return present


def told(webhook: dict[str, Any], status: int = 200) -> Response:
    headers = {"etag": f'"{webhook["version"]}"'}
    if status == 201:
        headers["location"] = f"{PREFIX}/webhooks/{webhook['id']}"
    return JSONResponse(webhook, status, headers)


def webhook_rows(table: Table, gateway: Gateway) -> None:
    row = table.of("Webhooks", "/webhooks").row

    @row("GET", "", "List webhooks", level="read", answers=webhook_shapes.Webhooks)
    async def list_webhooks(
        actor: Asking, limit: Limit = 50, cursor: Cursor = None, search: Search = None
    ) -> Any:
        page = await webhooks.listing(gateway, actor, limit, cursor, search)
        return one_page(page)

    @row(
        "POST",
        "",
        "Make a webhook",
        level="write",
        status=201,
        idempotent=True,
        answers=webhook_shapes.Webhook,
        versioned=True,
    )
    async def create_webhook(
        actor: Asking, request: Annotated[WebhookRequest, Body(examples=[EXAMPLE])]
    ) -> Any:
        return told(await webhooks.create(gateway, actor, request), 201)

    @row(
        "GET", "/{webhook_id}", "Show a webhook", level="read", answers=webhook_shapes.Webhook, versioned=True
    )
    async def show_webhook(actor: Asking, webhook_id: str) -> Any:
        return told(await webhooks.show(gateway, actor, webhook_id))

    patch_body = {
        "requestBody": {
            "required": True,
            "content": {
                kind: {"schema": {"$ref": "#/components/schemas/WebhookPatch"}}
                for kind in ("application/json", "application/merge-patch+json")
            },
        }
    }

    @row(
        "PATCH",
        "/{webhook_id}",
        "Change a webhook",
        level="write",
        refuses=("conflict",),
        extra=patch_body,
        answers=webhook_shapes.Webhook,
        versioned=True,
    )
    async def change_webhook(
        actor: Asking, webhook_id: str, patch: Annotated[dict[str, Any], Body()], if_match: IfMatch = None
    ) -> Any:
        """A merge patch (RFC 7396): what is named is changed, null goes back to the default. Secrets that are
        not named stay."""
        version = await seen_version(gateway, actor, webhook_id, if_match)
        return told(await webhooks.change(gateway, actor, webhook_id, patch, version))

    @row("DELETE", "/{webhook_id}", "Delete a webhook", level="write", status=204)
    async def delete_webhook(actor: Asking, webhook_id: str, if_match: IfMatch = None) -> Any:
        """Its URL stops answering for ever. Its history stays until retention takes it."""
        await webhooks.remove(
            gateway, actor, webhook_id, await seen_version(gateway, actor, webhook_id, if_match)
        )
        return Response(status_code=204)

    @row(
        "POST",
        "/{webhook_id}/enable",
        "Enable a webhook",
        level="write",
        refuses=("conflict",),
        answers=webhook_shapes.Webhook,
        versioned=True,
    )
    async def enable_webhook(actor: Asking, webhook_id: str, if_match: IfMatch = None) -> Any:
        version = await seen_version(gateway, actor, webhook_id, if_match)
        return told(await webhooks.switch(gateway, actor, webhook_id, True, version))

    @row(
        "POST",
        "/{webhook_id}/disable",
        "Disable a webhook",
        level="write",
        refuses=("conflict",),
        answers=webhook_shapes.Webhook,
        versioned=True,
    )
    async def disable_webhook(actor: Asking, webhook_id: str, if_match: IfMatch = None) -> Any:
        version = await seen_version(gateway, actor, webhook_id, if_match)
        return told(await webhooks.switch(gateway, actor, webhook_id, False, version))

    @row(
        "POST",
        "/{webhook_id}/promote",
        "Make the second secret the main one",
        level="write",
        refuses=("conflict",),
        answers=webhook_shapes.Webhook,
        versioned=True,
    )
    async def promote_secret(actor: Asking, webhook_id: str, if_match: IfMatch = None) -> Any:
        version = await seen_version(gateway, actor, webhook_id, if_match)
        return told(await webhooks.promote(gateway, actor, webhook_id, version))

    @row(
        "POST",
        "/{webhook_id}/adopt-secret",
        "Take the secret that a sender announced",
        level="write",
        refuses=("conflict",),
        answers=webhook_shapes.Webhook,
        versioned=True,
    )
    async def adopt_secret(actor: Asking, webhook_id: str, if_match: IfMatch = None) -> Any:
        """Some senders (Notion, Asana) announce their secret in the set-up handshake; it is kept aside until
        its owner takes it."""
        version = await seen_version(gateway, actor, webhook_id, if_match)
        return told(await webhooks.adopt(gateway, actor, webhook_id, version))


def duty_rows(table: Table, gateway: Gateway) -> None:
    """What a webhook can be told to do besides."""
    row = table.of("Webhooks", "/webhooks/{webhook_id}").row

    @row("POST", "/record-events", "Record the next event", level="write", answers=webhook_shapes.Recording)
    async def record_events(actor: Asking, webhook_id: str) -> Any:
        """The next accepted call, or replay, is kept as the sample from which a workflow's variables are
        shown."""
        return JSONResponse(await samples.arm(gateway, actor, webhook_id))

    @row("DELETE", "/record-events", "Stop waiting for an event", level="write", status=204)
    async def stop_recording(actor: Asking, webhook_id: str) -> Any:
        await samples.disarm(gateway, actor, webhook_id)
        return Response(status_code=204)

    @row("GET", "/sample", "Show the recorded event", level="read", answers=webhook_shapes.Sample)
    async def show_sample(actor: Asking, webhook_id: str) -> Any:
        return JSONResponse(await samples.sample(gateway, actor, webhook_id))

    @row(
        "GET", "/new-workflow", "Begin a workflow from the recorded event",
        level="read", answers={"type": "string"}, media_type="text/x-python; charset=utf-8", refuses=("conflict",),
    )  # fmt: skip
    async def new_workflow(
        actor: Asking,
        webhook_id: str,
        name: Annotated[str, Query(min_length=1, max_length=80, description="What to call it.")],
    ) -> Any:
        """Python source for the embedded engine: the event's fields typed as they came, its Webhook ID filled
        in. Nothing is saved."""
        source = await samples.new_workflow(gateway, actor, name, webhook_id)
        return PlainTextResponse(source, media_type="text/x-python; charset=utf-8")

    @row("DELETE", "/sample", "Forget the recorded event", level="write", status=204)
    async def forget_sample(actor: Asking, webhook_id: str) -> Any:
        await samples.forget(gateway, actor, webhook_id)
        return Response(status_code=204)

    @row(
        "POST",
        "/schedule/run",
        "Fetch now",
        level="write",
        answers=webhook_shapes.ScheduleRun,
        refuses=("conflict",),
    )
    async def run_schedule(actor: Asking, webhook_id: str) -> Any:
        """Fetches once, now, and says what came of it."""
        return JSONResponse(await schedules.run_now(gateway, actor, webhook_id))

    @row(
        "POST",
        "/schedule/resume",
        "Go on after a pause",
        level="write",
        answers=webhook_shapes.Webhook,
        versioned=True,
        refuses=("conflict",),
    )
    async def resume_schedule(actor: Asking, webhook_id: str) -> Any:
        return told(await schedules.resume(gateway, actor, webhook_id))

    @row("POST", "/hold", "Hold", level="write", answers=webhook_shapes.Hold)
    async def hold_webhook(actor: Asking, webhook_id: str, if_match: IfMatch = None) -> Any:
        """Calls are recorded and answered as ever; their deliveries wait until somebody lets them go."""
        version = await seen_version(gateway, actor, webhook_id, if_match)
        return JSONResponse(await holds.hold(gateway, actor, webhook_id, version))

    @row("POST", "/release", "End the hold", level="write", answers=webhook_shapes.Released)
    async def release_webhook(actor: Asking, webhook_id: str, if_match: IfMatch = None) -> Any:
        """What waited is due at once, the oldest first."""
        version = await seen_version(gateway, actor, webhook_id, if_match)
        return JSONResponse(await holds.release(gateway, actor, webhook_id, version))

    @row("POST", "/drop", "Drop what is held", level="write", answers=webhook_shapes.Dropped)
    async def drop_held(actor: Asking, webhook_id: str) -> Any:
        """What waits will not be started, unless it is replayed. The hold goes on."""
        return JSONResponse(await holds.drop(gateway, actor, webhook_id))

    @row(
        "GET",
        "/readmissible",
        "List rejected calls that would pass now",
        level="read",
        answers=webhook_shapes.Recheck,
    )
    async def list_readmissible(actor: Asking, webhook_id: str) -> Any:
        """Judged by the webhook's present settings, at the time they were received. Nothing is started."""
        return JSONResponse(await readmission.recheck(gateway, actor, webhook_id))
