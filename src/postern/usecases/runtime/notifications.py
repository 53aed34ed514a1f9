"""What other processes announce, and what it wakes here."""

from postern.usecases.runtime.gateway import Gateway

RARELY, OFTEN = 2.0, 0.25
"""Seconds after which a waiting caller's row is read without a wake-up: while announcements are heard, and
while they are not."""


async def follow(gateway: Gateway) -> None:
    """Runs as long as the gateway serves."""

    def on_announcement(text: str) -> None:
        kind, _, key = text.partition(":")
        match kind:
            case "configuration":
                gateway.runtime.directory.refresh_soon()
            case "due":
                gateway.runtime.due.set()
            case "answer":
                gateway.runtime.waiters.wake(key)
            case "listeners":
                gateway.runtime.listeners.changed.set()
            case "handed":
                gateway.runtime.listeners.wake(key)
            case "listening":
                gateway.runtime.listeners.changed.set()
                gateway.runtime.waiters.look_every = RARELY
                gateway.runtime.directory.refresh_soon()
                gateway.runtime.due.set()
                gateway.runtime.waiters.wake_all()
            case "deaf":
                gateway.runtime.waiters.look_every = OFTEN

    await gateway.store.listen(on_announcement)
