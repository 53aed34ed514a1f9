"""What other processes say, and whom it wakes here."""

from postern.usecases.runtime.gateway import Gateway

RARELY, OFTEN = 2.0, 0.25
"""Seconds after which a waiting caller's row is read without a wake-up: with the others' words to rely on,
and without."""


async def follow(gateway: Gateway) -> None:
    """Runs as long as the gateway serves."""

    def hear(word: str) -> None:
        kind, _, key = word.partition(":")
        match kind:
            case "configuration":
                gateway.directory.stir()
            case "due":
                gateway.due.set()
            case "answer":
                gateway.waiters.wake(key)
            case "listening":
                gateway.waiters.look_every = RARELY
                gateway.directory.stir()
                gateway.due.set()
                gateway.waiters.wake_all()
            case "deaf":
                gateway.waiters.look_every = OFTEN

    await gateway.store.listen(hear)
