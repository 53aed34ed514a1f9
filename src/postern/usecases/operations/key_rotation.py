"""The key that stored secrets are encrypted with: changing it."""

from postern.core.access.accounts import Actor
from postern.usecases.access.audit import noted
from postern.usecases.runtime.gateway import Gateway, require


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
            await gateway.store.audit.write(noted(gateway, actor, "key rotated", "secrets", reencrypted=done))
            return done
