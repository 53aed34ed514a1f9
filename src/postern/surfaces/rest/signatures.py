"""Signatures over HTTP: the known senders, and the tester."""

from typing import Annotated

from pydantic import Field

from postern.surfaces.rest.framework.operation import Rows, ShortText
from postern.usecases.shapes import Shape
from postern.usecases.signatures import signatures

row = Rows("Signatures")


class ProposalQuery(Shape):
    description: Annotated[str, Field(max_length=200)] | None = Field(
        default=None, description="What the sender is called."
    )
    invocation_id: ShortText | None = Field(default=None, description="A recorded call of it.")


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


row.of(signatures.providers, "list_providers", "GET", "/providers", "List the senders Postern knows")
row.of(signatures.provider, "show_provider", "GET", "/providers/{name}", "Show a sender")
row.of(signatures.scheme, "show_scheme", "GET", "/custom-scheme", "Show the members of a custom scheme")
row.of(
    signatures.propose, "propose_provider", "GET", "/proposals", "Propose a scheme",
    query=ProposalQuery, refuses=("not_found",),
)  # fmt: skip
row.of(
    signatures.test, "test_signature", "POST", "/signature-tests", "Test a signature",
    level="read", refuses=("not_found", "conflict"), body_example=EXAMPLE,
)  # fmt: skip
