"""The example: a webhook that looks orders up, made at the first start, so that a curl works at once."""

import json

from postern.core.access.accounts import Actor
from postern.core.webhooks.settings import TokenAuthentication
from postern.core.webhooks.stored import StoredWebhook
from postern.identity import new_token
from postern.usecases.runtime.gateway import Gateway
from postern.usecases.shapes import validated
from postern.usecases.stored_webhook import stored
from postern.usecases.webhooks import webhooks
from postern.usecases.webhooks.requests import WebhookRequest

NAME = "Example: order look-up"
BODY = {"orderNumber": "1001"}


async def example_curl(gateway: Gateway) -> str | None:
    """A command to paste, or None if there is no example any more."""
    webhook = await _example(gateway)
    if webhook is None:
        return None
    authentication, token = webhook.settings.authentication, webhook.secrets.get("main")
    if not isinstance(authentication, TokenAuthentication) or authentication.placement != "header":
        return None
    if token is None:  # it cannot be decrypted any more
        return None
    return (
        f"curl {gateway.site.webhook_url(webhook.address)} \\\n"
        f"  -H 'Content-Type: application/json' -H '{authentication.header_name}: {token.value.decode()}' \\\n"
        f"  -d '{json.dumps(BODY)}'"
    )


async def example_environment(gateway: Gateway) -> dict[str, str]:
    """Binds the example workflow to its own webhook, or to none: it must not take the events of others."""
    webhook = await _example(gateway)
    return {"ORDER_LOOKUP_WEBHOOK_ID": webhook.id if webhook else "none"}


async def _example(gateway: Gateway) -> StoredWebhook | None:
    """The example's webhook. It is made if there is no webhook at all."""
    there = gateway.runtime.directory.listed()
    if there:
        named = [entry.id for entry in there if entry.name == NAME]
        webhook = await gateway.store.webhooks.get(max(named)) if named else None
        return webhook if isinstance(webhook, StoredWebhook) else None
    request: WebhookRequest = validated(
        WebhookRequest,
        {
            "name": NAME,
            "authentication": {"method": "token", "token": new_token()},
            "fieldMapping": {"fieldOne": "orderNumber"},
            "synchronousResponse": {"enabled": True},
        },
    )
    made = await webhooks.create(gateway, Actor("first start", "write"), request)
    return await stored(gateway, made.id)
