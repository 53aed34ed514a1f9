"""Applies what the diagnosis of a rejected call found: one change of its webhook's settings."""

from functools import partial

from msgspec import Struct

from postern.core.access.accounts import Actor
from postern.core.calls.call import Call
from postern.core.documents import Patch
from postern.core.history.invocation import HistoryFilter
from postern.core.problems import Refused
from postern.core.signatures.credential import Credential, TokenCredential, Unproven
from postern.core.signatures.encoding import is_stand_in
from postern.core.webhooks.settings import SignatureAuthentication
from postern.core.webhooks.stored import StoredWebhook
from postern.usecases.calls.judging_again import has_shown_token
from postern.usecases.history.history import recorded
from postern.usecases.runtime.gateway import Gateway, require
from postern.usecases.signatures import signatures
from postern.usecases.stored_webhook import stored
from postern.usecases.webhooks import webhooks
from postern.usecases.webhooks.preparing import tried
from postern.usecases.webhooks.requests import SECRETS
from postern.usecases.webhooks.views import Webhook

LAST_CALLS = 50
LARGEST_TRIED = 1024 * 1024


class Effect(Struct, frozen=True):
    rejected: int
    of: int


async def apply(gateway: Gateway, actor: Actor, invocation_id: str, number: int) -> Webhook:
    """Change the webhook's authentication as the explanation of a rejected call offers under this number; its
    stored secrets stay."""
    require(actor, "write")
    changes = (await signatures.explain(gateway, actor, invocation_id)).would_verify_if
    offered = changes[number].patch if number < len(changes) else None
    if offered is None:
        raise Refused("conflict", "this fix is no longer on offer: the webhook was changed meanwhile")
    invocation = (await recorded(gateway, invocation_id)).invocation
    webhook = await stored(gateway, invocation.webhook_id)
    patch = _with_secrets(webhook, offered)
    return await webhooks.change(gateway, actor, webhook.id, {"authentication": patch})


async def take_second_secret(gateway: Gateway, actor: Actor, invocation_id: str, secret: str) -> Webhook:
    """Save a secret beside the main one, or as the main one where it is still awaited, if a rejected call was made with it; and
    nothing if it was not."""
    require(actor, "write")
    invocation = (await recorded(gateway, invocation_id)).invocation
    webhook = await stored(gateway, invocation.webhook_id)
    method = webhook.settings.authentication.method
    is_awaited = method == "hmac" and is_stand_in(webhook.secrets["main"].value)
    name = "secret" if is_awaited else "secondToken" if method == "token" else "secondSecret"
    patch = {"authentication": {name: secret}}
    call = invocation.as_call(gateway.site.base_url)
    credential = tried(gateway, webhook, patch).credential
    known = isinstance(credential, TokenCredential) and await has_shown_token(gateway, credential, invocation)
    if not known and isinstance(credential.check(call), Unproven):
        raise Refused("conflict", "with this one the call does not verify either; nothing was saved")
    return await webhooks.change(gateway, actor, webhook.id, patch)


async def effects(
    gateway: Gateway, actor: Actor, webhook_id: str, patches: list[Patch | None]
) -> list[Effect | None]:
    """Counts how many of the last accepted calls each of these changes would reject: one call that was signed in
    another way must not cost all the others. None where a change cannot be tried."""
    require(actor, "read")
    page = await gateway.store.history.page(HistoryFilter(webhook_id, code="accepted"), LAST_CALLS)
    small = [row.invocation.id for row in page.rows if row.invocation.body_size <= LARGEST_TRIED]
    kept = [story.invocation for story in await gateway.store.history.brief(small)]
    at_hand = gateway.runtime.key_sets.at_hand
    calls = [
        call.as_call(gateway.site.base_url).but(fetched=at_hand) for call in kept if call.body is not None
    ]
    results: list[Effect | None] = []
    for patch in patches:
        if patch is None:
            results.append(None)
            continue
        webhook = await stored(gateway, webhook_id)
        try:
            credential = tried(gateway, webhook, {"authentication": _with_secrets(webhook, patch)}).credential
        except (Refused, ValueError):
            results.append(None)
            continue
        rejected = await signatures.line.run(partial(_rejected, credential, calls))
        results.append(Effect(rejected, len(calls)))
    return results


def _rejected(credential: Credential, calls: list[Call]) -> int:
    return sum(isinstance(credential.check(call), Unproven) for call in calls)


def _with_secrets(webhook: StoredWebhook, change: Patch) -> Patch:
    patch = dict(change)
    authentication = webhook.settings.authentication
    provider = authentication.provider if isinstance(authentication, SignatureAuthentication) else ""
    if patch.get("provider", "") not in ("", provider):
        # Another sender starts without secrets; but it was with these that the call was seen to verify.
        patch |= {
            name: webhook.secrets[field].value.decode()
            for name, field in SECRETS["hmac"].items()
            if field in webhook.secrets
        }
    return patch
