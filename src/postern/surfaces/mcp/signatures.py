"""Tools for senders that sign: which scheme, and why a signature does not match."""

from postern.core.access.accounts import Actor
from postern.core.problems import FieldError, Refused
from postern.surfaces.mcp import arguments as ask
from postern.surfaces.mcp import views
from postern.surfaces.mcp.table import tool
from postern.usecases.runtime.gateway import Gateway
from postern.usecases.signatures import remedies, signatures
from postern.usecases.signatures.signatures import SignatureTest
from postern.usecases.signatures.views import (
    Explanation,
    Provider,
    SignatureExplanation,
    SignatureResult,
)
from postern.usecases.webhooks.views import Webhook

SIGNED = ("signedContent", "received")
# The signature that the stored secret makes is as good as the secret for this one body.
FORGERY = ("expected", "signedContentBase64")


@tool("List providers", "read", ask.Nothing)
async def list_providers(
    gateway: Gateway, actor: Actor, asked: ask.Nothing
) -> views.Items[views.ProviderInShort]:
    """The senders whose signatures Postern knows, by the name to use as provider. One that is not among them:
    provider custom with a scheme, or the generic scheme."""
    known = await signatures.providers(gateway, actor)
    return views.Items(items=[views.provider_in_short(about) for about in known])


@tool("Show a provider", "read", ask.OneProvider)
async def show_provider(gateway: Gateway, actor: Actor, asked: ask.OneProvider) -> Provider:
    """How one sender signs, step by step what to set up there, what to paste as the secret, and how it
    retries."""
    known = {about.name: about for about in await signatures.providers(gateway, actor)}
    if asked.provider not in known:
        raise Refused("not_found", f"there is no provider of this name; there are {', '.join(known)}")
    return known[asked.provider]


@tool("Propose a provider", "read", ask.ProposeProvider)
async def propose_provider(
    gateway: Gateway, actor: Actor, asked: ask.ProposeProvider
) -> views.Items[views.ProviderInShort]:
    """Which built-in signature scheme fits, best first: by words about the sender, or by what a recorded call
    of it looks like."""
    if (asked.description is None) == (asked.invocation_id is None):
        raise Refused(
            "invalid_request",
            errors=[FieldError("description", "give description or invocationId, one of them")],
        )
    found = await signatures.propose(gateway, actor, asked.description, asked.invocation_id)
    return views.Items(items=[views.provider_in_short(about) for about in found])


@tool("Test a signature", "read", SignatureTest, outside=SIGNED, without=FORGERY)
async def test_signature(gateway: Gateway, actor: Actor, asked: SignatureTest) -> SignatureResult:
    """Check whether a call's signature is right and explain, step by step, why it is not and what would make
    it right. Give how to check (webhookId for its stored settings and secrets, or authentication) and what to
    check (invocationId for a recorded call, or call). Nothing is recorded or started."""
    return await signatures.test(gateway, actor, asked)


@tool("Explain a rejection", "read", ask.OneInvocation, outside=SIGNED, without=FORGERY)
async def explain_rejection(
    gateway: Gateway, actor: Actor, asked: ask.OneInvocation
) -> SignatureExplanation | Explanation:
    """Why a recorded call was rejected, in words, and what would fix it: each entry of wouldVerifyIf has been
    tried and works. One with a patch is applied by apply_fix with its place in the list, from 0; without one
    the sender has to change something."""
    return await signatures.explain(gateway, actor, asked.invocation_id)


@tool("Apply a fix", "write", ask.ApplyFix, repeatable=False)
async def apply_fix(gateway: Gateway, actor: Actor, asked: ask.ApplyFix) -> Webhook:
    """Change a webhook's authentication in the way that explain_rejection offered for one of its rejected
    calls; the stored secrets stay. Calls like it are accepted from now on; recheck_rejected then finds those
    that were rejected before."""
    return await remedies.apply(gateway, actor, asked.invocation_id, asked.number)
