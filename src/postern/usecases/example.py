"""The ready example: a webhook that looks orders up, made once, so that the first curl works a minute after the clone."""

import json

from postern.core.records import Actor
from postern.identity import new_token
from postern.usecases import webhooks
from postern.usecases.configuration import WebhookRequest, validated
from postern.usecases.gateway import Gateway

NAME = "Example: order look-up"
BODY = {"orderNumber": "1001"}


async def example_curl(gateway: Gateway) -> str | None:
    """A command to paste, or None where the user has deleted the example or made webhooks without it."""
    stored = await gateway.store.webhooks.page(1, None, NAME)
    if not stored and not await gateway.store.webhooks.page(1):
        request: WebhookRequest = validated(
            WebhookRequest,
            {
                "name": NAME,
                "authentication": {"method": "token", "token": new_token()},
                "fieldMapping": {"fieldOne": "orderNumber"},
                "synchronousResponse": {"enabled": True},
            },
        )
        await webhooks.create(gateway, Actor("first start", "write"), request)
        stored = await gateway.store.webhooks.page(1, None, NAME)
    if not stored or stored[0].document["authentication"].get("placement") != "header":
        return None
    webhook = stored[0]
    header = webhook.document["authentication"]["headerName"]
    return (
        f"curl {gateway.webhook_url(webhook.short_code)} \\\n"
        f"  -H 'Content-Type: application/json' -H '{header}: {webhook.secrets['main'].value.decode()}' \\\n"
        f"  -d '{json.dumps(BODY)}'"
    )
