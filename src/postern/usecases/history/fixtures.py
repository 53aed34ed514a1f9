"""Recorded calls as fixtures: files on which tests of workflows run (`postern.workflows.testing`)."""

import re

from postern.core.access.accounts import Actor
from postern.core.history.invocation import NO_PAYLOAD, Invocation, payload_of
from postern.core.history.sample import event_in, sample_of
from postern.core.problems import Refused
from postern.core.signatures.redact import MASK
from postern.core.webhooks.webhook import Webhook
from postern.usecases.answers import Time
from postern.usecases.history.history import recorded
from postern.usecases.history.rows import sender_event_of
from postern.usecases.history.views.requests import TOO_LARGE, Fixture
from postern.usecases.runtime.gateway import Gateway, require
from postern.workflows.testing import VERSION

_SIGNS = re.compile(r"signature|sign$|hmac|digest", re.IGNORECASE)


async def fixture(gateway: Gateway, actor: Actor, invocation_id: str) -> Fixture:
    """A recorded call as a file on which tests of workflow files run: the event as a workflow gets it, and
    the headers without credentials and signatures."""
    require(actor, "read")
    story = await recorded(gateway, invocation_id)
    invocation = story.invocation
    if not (invocation.is_event or story.deliveries):  # a rejected call may have been admitted
        detail = f"this call was not accepted ({invocation.code}): no workflow gets such an event"
        raise Refused("conflict", detail)
    payload = payload_of(invocation)
    if payload is None:
        raise Refused("conflict", NO_PAYLOAD)
    webhook = gateway.runtime.directory.by_id(invocation.webhook_id)
    if story.deliveries:
        fields = story.deliveries[0].fields
    else:  # a duplicate, or what it started was forgotten
        fields = webhook.mapping.apply(payload)[0] if webhook else {}
    event = event_in(sample_of(invocation.webhook_id, invocation_id, fields, payload.text))
    if event is None:
        raise Refused("conflict", f"its payload holds {TOO_LARGE}")
    return Fixture(
        postern_event=VERSION,
        name=sender_event_of(gateway, invocation),
        webhook=webhook.name if webhook else "",
        received_at=Time(invocation.received_at),
        headers=_headers(invocation, webhook),
        event=event,
    )


def _headers(invocation: Invocation, webhook: Webhook | None) -> list[list[str]]:
    """Leaves out signatures: fixtures lie in repositories, and with a signature anybody could send the call again."""
    proof = {name.decode("latin-1") for name in webhook.credential.read_headers} if webhook else set()
    return [
        [name, value]
        for name, value in invocation.header_pairs
        if MASK not in value and name.lower() not in proof and not _SIGNS.search(name)
    ]
