"""The turns of a lane as its webhook is set now, and what a delivery in it waits for."""

from postern.core.history.invocation import Delivery
from postern.core.webhooks.turns import TurnRules, waits_for
from postern.usecases.runtime.gateway import Gateway


def turns_of(gateway: Gateway, lane: str) -> TurnRules | None:
    webhook = gateway.runtime.directory.by_id(lane) if lane else None
    return None if webhook is None else webhook.turns


def tells_ends(gateway: Gateway, webhook_id: str) -> bool:
    """Whether a run is at work until it has ended, and not only until it was taken."""
    webhook = gateway.runtime.directory.by_id(webhook_id)
    has_target = webhook is not None and webhook.target is not None
    return not has_target and gateway.engine is not None and gateway.engine.asked_after is not None


async def awaited(gateway: Gateway, delivery: Delivery) -> str:
    """For what it waits, in words; empty if it waits for no turn."""
    turns = turns_of(gateway, delivery.lane)
    if turns is None or not delivery.waits_for_turn:
        return ""
    return waits_for(
        turns,
        await gateway.store.turns.ahead(delivery, tells_ends(gateway, delivery.webhook_id)),
        delivery.created_at,
    )
