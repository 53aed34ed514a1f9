"""The loops of a serving process: a round of work, then a pause, until it is asked to stop."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from postern.core.history.invocation import StoreUnavailable
from postern.observe.logs import log

CATCH_UP_EVERY = 60.0

AFTER_FAILURE = 1.0
"""Seconds until the next round when one has failed."""
AGAIN_AFTER = 60.0
"""Seconds between two log lines that the store is away: they must not fill a full disk."""


class Loop:
    """Nothing that a round raises ends the loop: it is logged, and the next round tries again."""

    def __init__(
        self,
        name: str,
        work: Callable[[], Awaitable[object]],
        every: float,
        until: Callable[[], Awaitable[object]] | None = None,
        *,
        gather: float = 0.0,
        catch_up: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        """``work``: one round. If it returns something true, no pause follows. A pause lasts ``every`` seconds, or until news has
        come, and ``gather`` seconds more, for what comes with it. ``catch_up``: called at first and each minute."""
        self._name = name
        self._work = work
        self.every = every
        self._until = until
        self._gather = gather
        self._catch_up = catch_up
        self._catch_up_at = 0.0
        self._say_again_at = 0.0
        self._stopping = asyncio.Event()

    @property
    def stopping(self) -> bool:
        return self._stopping.is_set()

    def stop(self) -> None:
        """The round that is under way is the last one."""
        self._stopping.set()

    async def run(self) -> None:
        while not self.stopping:
            try:
                if self._catch_up is not None and time.monotonic() >= self._catch_up_at:
                    self._catch_up_at = time.monotonic() + CATCH_UP_EVERY
                    await self._catch_up()
                if not await self._work():
                    await self.rest(self.every, *([self._until()] if self._until else []))
                    await asyncio.sleep(self._gather)
            except StoreUnavailable as trouble:
                if time.monotonic() >= self._say_again_at:
                    self._say_again_at = time.monotonic() + AGAIN_AFTER
                    log.warning("the store is not available", loop=self._name, error=str(trouble))
                await self.rest(AFTER_FAILURE)
            except Exception:
                log.exception("a round failed", loop=self._name)
                await self.rest(AFTER_FAILURE)

    async def rest(self, seconds: float, *until: Awaitable[Any]) -> None:
        """Waits that long, or until one of these is done, or the loop is to stop."""
        waiting = [asyncio.ensure_future(awaitable) for awaitable in (self._stopping.wait(), *until)]
        try:
            await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
