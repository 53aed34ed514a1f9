"""The webhooks' own targets, each with its own connections, so that one that is slow takes none of another's."""

import asyncio
from collections.abc import Callable

from postern.core.address import Allowlist
from postern.core.webhooks.target import OwnTarget
from postern.engines.target import TargetEngine

CLOSED_AFTER = 60.0
"""Seconds after which the connections to a changed target are closed: starts may be under way."""


class Targets:
    def __init__(self, allowed: Allowlist) -> None:
        self._allowed = allowed
        self._made: dict[str, tuple[OwnTarget, TargetEngine]] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def of(self, webhook_id: str, target: OwnTarget, is_there: Callable[[str], object]) -> TargetEngine:
        """``is_there``: says of a webhook's id whether it is served."""
        made = self._made.get(webhook_id)
        if made is not None and made[0] == target:
            return made[1]
        engine = TargetEngine(target, self._allowed)
        for gone in [key for key in self._made if key == webhook_id or not is_there(key)]:
            closing = asyncio.create_task(self._close_later(self._made.pop(gone)[1]))
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)
        self._made[webhook_id] = target, engine
        return engine

    async def _close_later(self, engine: TargetEngine) -> None:
        try:
            await asyncio.sleep(CLOSED_AFTER)
        finally:
            await engine.close()

    async def aclose(self) -> None:
        for closing in self._closing:
            closing.cancel()
        await asyncio.gather(*self._closing, return_exceptions=True)
        for _, engine in self._made.values():
            await engine.close()
