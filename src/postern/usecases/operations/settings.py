"""The settings that this process was started with. Only a restart changes them."""

from postern.core.access.accounts import Actor
from postern.core.operations.shown_setting import ShownSetting
from postern.usecases.access.audit import note_down
from postern.usecases.runtime.gateway import Gateway, require


async def in_force(gateway: Gateway, actor: Actor) -> list[ShownSetting]:
    """Every setting that the process was started with, its value and where that comes from; of secrets only whether they are
    set."""
    require(actor, "admin")
    return gateway.settings


async def rotate_key(gateway: Gateway, actor: Actor) -> int:
    """Encrypt every secret with the first key again, in small steps; how many there were. A run that was
    stopped goes on."""
    require(actor, "admin")
    done = 0
    while True:
        changed, left = await gateway.store.webhooks.reseal()
        done += changed
        if not left:
            done += await gateway.store.idempotency.reseal()
            await note_down(gateway, actor, "key rotated", "secrets", reencrypted=done)
            return done
