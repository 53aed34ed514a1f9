"""Signatures over HTTP: the senders Postern knows, and the tester that explains."""

from typing import Annotated, Any

from fastapi import Body, Query
from starlette.responses import JSONResponse

from postern.surfaces.rest import shapes, signature_shapes
from postern.surfaces.rest.pages import whole
from postern.surfaces.rest.table import Asking, Table
from postern.usecases.runtime.gateway import Gateway
from postern.usecases.signatures import signatures

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


def signature_rows(table: Table, gateway: Gateway) -> None:
    row = table.of("Signatures").row

    @row(
        "GET",
        "/providers",
        "List the senders Postern knows",
        level="read",
        answers=shapes.Listing[signature_shapes.Provider],
    )
    async def list_providers(actor: Asking) -> Any:
        return whole(await signatures.providers(gateway, actor))

    @row(
        "GET",
        "/proposals",
        "Propose a scheme",
        level="read",
        answers=shapes.Listing[signature_shapes.Provider],
        refuses=("not_found",),
    )
    async def propose_provider(
        actor: Asking,
        description: Annotated[
            str | None, Query(max_length=200, description="What the sender is called.")
        ] = None,
        invocation_id: Annotated[
            str | None, Query(alias="invocationId", max_length=80, description="A recorded call of it.")
        ] = None,
    ) -> Any:
        """By what the sender is called, or by what a recorded call of it looks like. Best first."""
        return whole(await signatures.propose(gateway, actor, description, invocation_id))

    @row(
        "POST",
        "/signature-tests",
        "Test a signature",
        level="read",
        answers=signature_shapes.SignatureResult,
        refuses=("not_found", "conflict"),
    )
    async def test_signature(
        actor: Asking, request: Annotated[signatures.SignatureTest, Body(examples=[EXAMPLE])]
    ) -> Any:
        """Says whether a call verifies, why not, and what would make it. Nothing is recorded or started."""
        return JSONResponse(await signatures.test(gateway, actor, request))
