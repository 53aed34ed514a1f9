"""A serving process follows who listens: those that came through another process, and those that have died."""

from postern.usecases.listeners.listeners import refresh, sweep
from postern.usecases.runtime.gateway import Gateway
from postern.usecases.runtime.loop import Loop

LOOK_EVERY = 1.0


class ListenersLoop:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._loop = Loop("listeners", self._work, self._pause)
        self.run, self.stop = self._loop.run, self._loop.stop

    async def _work(self) -> bool:
        self._gateway.runtime.listeners.changed.clear()
        await sweep(self._gateway)
        await refresh(self._gateway)
        return False

    async def _pause(self) -> None:
        await self._loop.rest(LOOK_EVERY, self._gateway.runtime.listeners.changed.wait())
