"""Tools for test calls: which there are, and sending one."""

from postern.core.access.accounts import Actor
from postern.surfaces.mcp import arguments as ask
from postern.surfaces.mcp import views
from postern.surfaces.mcp.table import tool
from postern.usecases.runtime.gateway import Gateway
from postern.usecases.signatures import sending
from postern.usecases.signatures.sending import SendRequest
from postern.usecases.signatures.views import SampleCall, Sent


@tool("List test calls", "read", ask.OneWebhook)
async def list_test_calls(gateway: Gateway, actor: Actor, asked: ask.OneWebhook) -> views.Items[SampleCall]:
    """The calls that send_test_call can make for a webhook: its sender's usual events with their headers and bodies,
    and what was recorded of it. Words in braces, like {uuid}, are filled in when one is sent."""
    return views.Items(items=await sending.samples(gateway, actor, asked.webhook_id))


@tool("Send a test call", "write", ask.SendTestCall, repeatable=False)
async def send_test_call(gateway: Gateway, actor: Actor, asked: ask.SendTestCall) -> Sent:
    """Make a call as the webhook's sender would, correctly signed with the stored secret, and send it to the
    webhook's public URL. It comes in as any other call: it is recorded, and an accepted one really starts workflows.
    With wrong it is broken in one way, to see what is rejected. The answer tells the outcome and the invocation id:
    show_invocation and explain_rejection tell the rest."""
    request = SendRequest(event=asked.event, body=asked.body, changes=asked.changes, wrong=asked.wrong)
    return await sending.send(gateway, actor, asked.webhook_id, request, hide_signature=True)
