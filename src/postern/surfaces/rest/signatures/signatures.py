"""Signatures over HTTP: the senders Postern knows, and the tester that explains."""

from typing import Annotated

from pydantic import Field

from postern.core.access.accounts import Actor
from postern.surfaces.rest.framework.operation import Rows
from postern.surfaces.rest.framework.parameters import Text
from postern.usecases.answers import Listing, whole
from postern.usecases.runtime.gateway import Gateway
from postern.usecases.shapes import Shape
from postern.usecases.signatures import signatures, views

row = Rows("Signatures")


class ProposalQuery(Shape):
    description: Annotated[
        Annotated[str, Field(max_length=200)] | None, Field(description="What the sender is called.")
    ] = None
    invocation_id: Annotated[Text | None, Field(description="A recorded call of it.")] = None


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
