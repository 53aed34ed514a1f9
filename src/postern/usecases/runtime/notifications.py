"""Announcements of other processes, and what they wake here."""

from postern.stores.sql import wake
from postern.usecases.runtime.gateway import Gateway

RARELY, OFTEN = 2.0, 0.25
"""Seconds after which a waiting caller's row is read without a wake-up, while announcements are heard and while not."""


async def follow(gateway: Gateway) -> None:
    """Runs as long as the gateway serves."""

    def on_announcement(text: str) -> None:
        word, _, about = text.partition(":")
        match word:
            case wake.CONFIGURATION:
                gateway.runtime.directory.refresh_soon()
            case wake.DUE:
                gateway.runtime.due.set()
            case wake.ANSWER:
                gateway.runtime.waiters.wake(about)
            case wake.LISTENERS:
                gateway.runtime.listeners.changed.set()
            case wake.HANDED:
                gateway.runtime.listeners.wake(about)
            case wake.LISTENING:
                gateway.runtime.listeners.changed.set()
                gateway.runtime.waiters.look_every = RARELY
                gateway.runtime.directory.refresh_soon()
                gateway.runtime.due.set()
                gateway.runtime.waiters.wake_all()
            case wake.DEAF:
                gateway.runtime.waiters.look_every = OFTEN
            case _:
                pass  # a newer version of the program announced it

    await gateway.store.listen(on_announcement)
