"""Applying what the diagnosis of a refused call found: one change of its webhook's settings, and calls like
it verify."""

from typing import Any

from postern.core.access.accounts import Actor
from postern.core.problems import Refused
from postern.core.webhooks.settings import SignatureAuthentication
from postern.usecases.history.history import recorded
from postern.usecases.runtime.gateway import Gateway, require
from postern.usecases.signatures import signatures
from postern.usecases.webhooks import webhooks
from postern.usecases.webhooks.configuration import SECRETS


async def apply(gateway: Gateway, actor: Actor, invocation_id: str, number: int) -> dict[str, Any]:
    """The change with this number in the list that ``signatures.explain`` gives. Found again here: nobody
    sends one along."""
    require(actor, "write")
    changes = (await signatures.explain(gateway, actor, invocation_id))["wouldVerifyIf"]
    if number >= len(changes) or changes[number]["patch"] is None:
        raise Refused("conflict", "this fix is no longer on offer: the webhook was changed meanwhile")
    patch = dict(changes[number]["patch"])
    invocation, _ = await recorded(gateway, invocation_id)
    webhook = await webhooks.stored(gateway, invocation.webhook_id)
    authentication = webhook.settings.authentication
    provider = authentication.provider if isinstance(authentication, SignatureAuthentication) else ""
    if patch.get("provider", "") not in ("", provider):
        # Another sender starts without secrets; but it was with these that the call was seen to verify.
        patch |= {
            name: webhook.secrets[field].value.decode()
            for name, field in SECRETS["hmac"].items()
            if field in webhook.secrets
        }
    return await webhooks.change(gateway, actor, webhook.id, {"authentication": patch})
