"""Calls that are not started because a newer one is, and those that a person lets go out of their turn."""

from postern.core.access.accounts import Actor
from postern.core.history.invocation import Delivery
from postern.core.problems import Refused
from postern.usecases.access.audit import noted
from postern.usecases.history.history import recorded
from postern.usecases.history.views import calls as views
from postern.usecases.runtime.gateway import Gateway, require
from postern.usecases.runtime.turns import turns_of


async def supersede_by(gateway: Gateway, delivery: Delivery) -> None:
    """Nothing that came before it with the same turn is started any more."""
    while given_up := await gateway.store.turns.supersede(delivery):
        for invocation_id in given_up:
            gateway.runtime.live.touch(invocation_id)


async def start_now(gateway: Gateway, actor: Actor, invocation_id: str) -> views.Replayed:
    """Start a call that waits for its turn at once, whatever is at work. It is counted with none. Where only the newest of a
    value is started, those before it are superseded by it."""
    require(actor, "write")
    story = await recorded(gateway, invocation_id)
    waiting = next((candidate for candidate in story.deliveries if candidate.waits_for_turn), None)
    note = noted(gateway, actor, "call started out of turn", invocation_id)
    if waiting is None or not await gateway.store.turns.start_now(waiting.key, gateway.clock(), note):
        raise Refused("conflict", "this call does not wait for its turn")
    turns = turns_of(gateway, waiting.lane)
    if turns is not None and turns.quiet is not None:
        await supersede_by(gateway, waiting)
    gateway.runtime.starts_due(waiting.lane)
    gateway.runtime.live.touch(invocation_id)
    return views.Replayed(invocation_id=invocation_id, delivery=views.delivery_of(waiting))
