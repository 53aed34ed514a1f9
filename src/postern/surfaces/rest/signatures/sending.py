"""Test calls over HTTP: which there are, and sending one."""

from postern.core.access.accounts import Actor
from postern.surfaces.rest.framework.operation import Rows
from postern.usecases.answers import Listing, whole
from postern.usecases.runtime.gateway import Gateway
from postern.usecases.signatures import sending
from postern.usecases.signatures.views import SampleCall, Sent

row = Rows("Webhooks")

EXAMPLE = {"event": "orders/create", "changes": {"customer.email": "ada@example.com"}}


@row("GET", "/webhooks/{webhook_id}/test-calls", "List the test calls that can be sent", level="read")
async def list_test_calls(gateway: Gateway, actor: Actor, webhook_id: str) -> Listing[SampleCall]:
    """The usual events of its sender, and what was recorded of it. The first is what is sent by itself."""
    return whole(await sending.samples(gateway, actor, webhook_id))


@row(
    "POST", "/webhooks/{webhook_id}/test-calls", "Send a test call",
    level="write", refuses=("conflict", "temporarily_unavailable"), body_example=EXAMPLE,
)  # fmt: skip
async def send_test_calls(gateway: Gateway, actor: Actor, webhook_id: str, body: sending.SendRequest) -> Sent:
    """Made as its sender would make it, with the stored secret, and sent to the public URL: it comes in, is recorded
    and starts workflows as any other call. The signature is not shown."""
    return await sending.send(gateway, actor, webhook_id, body)
