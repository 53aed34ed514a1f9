"""Subscriptions that a sender (Amazon SNS) makes only after its receiver has agreed."""

from postern.core.access.accounts import Actor
from postern.core.calls.paths import as_text, walk
from postern.core.problems import FetchTrouble, Refused
from postern.core.signatures.handshake import confirmation_at
from postern.usecases.access.audit import note_down
from postern.usecases.history.history import recorded
from postern.usecases.runtime.gateway import Gateway, require
from postern.usecases.signatures.views import ConfirmedSubscription

CONFIRM_WITHIN = 15.0
LARGEST_CONFIRMATION = 64 * 1024


async def confirm(gateway: Gateway, actor: Actor, invocation_id: str) -> ConfirmedSubscription:
    """Agree to the subscription that a recorded call of Amazon SNS asks for: from then on the topic's messages are sent to this
    webhook. Anybody can subscribe a URL to a topic of their own, so this is not done by itself."""
    require(actor, "write")
    invocation = (await recorded(gateway, invocation_id)).invocation
    call = invocation.as_call(gateway.site.base_url)
    # Only a call whose signature was right is a handshake with what it was matched with.
    address = confirmation_at(call) if invocation.code == "handshake" and invocation.matched else None
    if address is None:
        raise Refused("conflict", "this call asks for no subscription to be confirmed")
    if gateway.outbound.fetch is None:
        raise Refused("conflict", "this process sends nothing")
    try:
        heard = await gateway.outbound.fetch(
            address, headers={}, timeout=CONFIRM_WITHIN, max_bytes=LARGEST_CONFIRMATION, max_redirects=0
        )
    except FetchTrouble as trouble:
        raise Refused("temporarily_unavailable", f"the sender could not be asked: {trouble.detail}") from None
    if heard.status != 200:
        detail = f"the sender answered {heard.status}; what it asked for is good for three days"
        raise Refused("conflict", detail)
    topic = as_text(walk(call.body, ("TopicArn",)) or b"")
    webhook_id = invocation.webhook_id
    await note_down(
        gateway, actor, "subscription confirmed", webhook_id, topic=topic, invocationId=invocation_id
    )
    return ConfirmedSubscription(webhook_id=webhook_id, invocation_id=invocation_id, topic=topic)
