"""Signatures over HTTP: the senders Postern knows, and the tester that explains."""

from typing import Annotated

from pydantic import Field

from postern.core.access.accounts import Actor
from postern.surfaces.rest.framework.operation import Rows, Text
from postern.usecases.answers import Listing, whole
from postern.usecases.runtime.gateway import Gateway
from postern.usecases.shapes import WHOLE, Shape
from postern.usecases.signatures import remedies, signatures, views
from postern.usecases.webhooks.views import Webhook

row = Rows("Signatures")
fix_row = Rows("History")


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


@row("GET", "/providers/{name}", "Show a sender", level="read")
async def show_provider(gateway: Gateway, actor: Actor, name: str) -> views.Provider:
    """How it signs, what to set up there, what to paste as the secret, and how it sends again."""
    return await signatures.provider(gateway, actor, name)


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


class FixRequest(Shape):
    number: Annotated[
        Annotated[int, Field(ge=0, le=100), WHOLE],
        Field(description="Its place in wouldVerifyIf of the call's explanation; the first is 0."),
    ]


@fix_row(
    "POST", "/invocations/{invocation_id}/fix", "Change the webhook so that calls like this one verify",
    level="write", versioned=True, refuses=("conflict",),
)  # fmt: skip
async def apply_fix(gateway: Gateway, actor: Actor, invocation_id: str, body: FixRequest) -> Webhook:
    """The webhook's authentication is changed as the explanation of the rejected call offers; its stored secrets stay."""
    return await remedies.apply(gateway, actor, invocation_id, body.number)
