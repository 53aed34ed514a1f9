"""Signatures over HTTP: the senders Postern knows, and the tester that explains."""

from postern.core.access.accounts import Actor
from postern.surfaces.rest.framework.table import Rows
from postern.surfaces.rest.requests import ProposalQuery
from postern.usecases.answers import Listing, whole
from postern.usecases.runtime.gateway import Gateway
from postern.usecases.signatures import signatures, views

row = Rows("Signatures")

EXAMPLE = {
    "authentication": {"method": "hmac", "provider": "stripe", "secret": "whsec_…"},
    "call": {
        "method": "POST",
        "url": "https://…",
        "headers": [["Stripe-Signature", "t=1700000000,v1=…"]],
        "body": "{}",
    },
    "at": 1700000000,
}


@row("GET", "/providers", "List the senders Postern knows", level="read")
async def list_providers(gateway: Gateway, actor: Actor) -> Listing[views.Provider]:
    return whole(await signatures.providers(gateway, actor))


@row("GET", "/proposals", "Propose a scheme", level="read", refuses=("not_found",))
async def propose_provider(gateway: Gateway, actor: Actor, query: ProposalQuery) -> Listing[views.Provider]:
    """By what the sender is called, or by what a recorded call of it looks like. Best first."""
    return whole(await signatures.propose(gateway, actor, query.description, query.invocation_id))


@row(
    "POST", "/signature-tests", "Test a signature",
    level="read", refuses=("not_found", "conflict"), body_example=EXAMPLE,
)  # fmt: skip
async def test_signature(
    gateway: Gateway, actor: Actor, body: signatures.SignatureTest
) -> views.SignatureResult:
    """Says whether a call verifies, why not, and what would make it. Nothing is recorded or started."""
    return await signatures.test(gateway, actor, body)
