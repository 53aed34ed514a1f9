"""Hold a webhook's deliveries, over HTTP."""

from postern.core.access.accounts import Actor
from postern.surfaces.rest.framework.operation import Rows
from postern.surfaces.rest.webhooks.webhooks import seen_version
from postern.usecases.deliveries import holds
from postern.usecases.deliveries.views import Dropped, Hold, Released
from postern.usecases.runtime.gateway import Gateway

row = Rows("Webhooks")


@row("POST", "/webhooks/{webhook_id}/hold", "Hold", level="write")
async def hold_webhook(gateway: Gateway, actor: Actor, webhook_id: str, if_match: str | None) -> Hold:
    """Calls are recorded and answered as ever; their deliveries wait until somebody lets them go."""
    version = await seen_version(gateway, actor, webhook_id, if_match)
    return await holds.hold(gateway, actor, webhook_id, version)


@row("POST", "/webhooks/{webhook_id}/release", "End the hold", level="write")
async def release_webhook(gateway: Gateway, actor: Actor, webhook_id: str, if_match: str | None) -> Released:
    """What waited is due at once, the oldest first."""
    version = await seen_version(gateway, actor, webhook_id, if_match)
    return await holds.release(gateway, actor, webhook_id, version)


@row("POST", "/webhooks/{webhook_id}/drop", "Drop what is held", level="write")
async def drop_held(gateway: Gateway, actor: Actor, webhook_id: str) -> Dropped:
    """What waits will not be started, unless it is replayed. The hold goes on."""
    return await holds.drop(gateway, actor, webhook_id)
