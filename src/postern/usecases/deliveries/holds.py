"""Hold: a webhook's calls are checked, recorded and answered, and their deliveries wait until the webhook is released."""

from typing import Any

from postern.core.access.accounts import Actor
from postern.core.deliveries.delivery import DeliveryState
from postern.observe.logs import log
from postern.usecases.access.audit import note_down, noted
from postern.usecases.deliveries import views
from postern.usecases.runtime.gateway import Gateway, require
from postern.usecases.stored_webhook import save, stored

LONGEST_RELEASE = 60.0
"""Seconds after which a release that has left something is taken for interrupted."""
STEP = 500
"""Deliveries that one step moves. Calls are stored between the steps."""


async def hold(
    gateway: Gateway, actor: Actor, webhook_id: str, seen_version: int | None = None
) -> views.Hold:
    """Keep accepting and recording calls; their deliveries wait until somebody lets them go. Callers who would wait for a
    workflow hear at once that the call is accepted."""
    require(actor, "write")
    await _set(gateway, actor, webhook_id, True, seen_version)
    return views.Hold(**await _state(gateway, webhook_id))


async def release(
    gateway: Gateway, actor: Actor, webhook_id: str, seen_version: int | None = None
) -> views.Released:
    """End the hold; what waited is due at once, the oldest first. Asked again after an interruption, it goes
    on."""
    require(actor, "write")
    await _set(gateway, actor, webhook_id, False, seen_version)
    released = await move(gateway, webhook_id, "queued")
    return views.Released(**await _state(gateway, webhook_id), released=released)


async def drop(gateway: Gateway, actor: Actor, webhook_id: str) -> views.Dropped:
    """The waiting calls will not be started, unless they are replayed. The hold goes on."""
    require(actor, "write")
    await stored(gateway, webhook_id)
    await note_down(gateway, actor, "held deliveries dropped", webhook_id)
    dropped = await move(gateway, webhook_id, "dropped")
    return views.Dropped(**await _state(gateway, webhook_id), dropped=dropped)


async def _set(gateway: Gateway, actor: Actor, webhook_id: str, held: bool, seen_version: int | None) -> None:
    webhook = await stored(gateway, webhook_id, seen_version)
    if webhook.held != held:
        webhook.held = held
        note = noted(gateway, actor, "webhook held" if held else "webhook released", webhook_id)
        await save(gateway, webhook, {}, note)


async def move(gateway: Gateway, webhook_id: str, state: DeliveryState) -> int:
    """Moves all deliveries that wait behind a hold, the oldest first. Returns how many."""
    moved = 0
    while step := await gateway.store.deliveries.unhold(webhook_id, state, gateway.clock(), STEP):
        moved += step
        gateway.runtime.starts_due()
    return moved


async def go_on(gateway: Gateway) -> None:
    """Lets go what a release that was interrupted has left behind, at webhooks that are not on hold any more."""
    for webhook_id in await gateway.store.deliveries.left_held(gateway.clock() - LONGEST_RELEASE):
        if released := await move(gateway, webhook_id, "queued"):
            log.warning("a release that was interrupted went on", webhook=webhook_id, released=released)


async def _state(gateway: Gateway, webhook_id: str) -> dict[str, Any]:
    waiting = await gateway.store.deliveries.held([webhook_id])
    held = (await stored(gateway, webhook_id)).held
    return {"webhook_id": webhook_id, "held": held, "waiting": waiting.get(webhook_id, 0)}
