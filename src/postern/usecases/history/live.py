"""Watching calls as they come in: each invocation when it is recorded, and whenever its deliveries move."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress

from msgspec import Struct

from postern.core.access.accounts import Actor
from postern.core.history.invocation import HistoryFilter, Story
from postern.core.problems import Refused
from postern.identity import first_id_at, time_of
from postern.usecases.runtime.gateway import Gateway, require
from postern.usecases.runtime.live_feed import LiveEvent, Watcher
from postern.usecases.summary import summary_of

HEARTBEAT = 5.0
CHECK_EVERY = 5.0
"""Seconds that a stream goes on at most after its reader was signed out or deleted."""
OVERLAP = 10.0
"""A resumed stream begins so many seconds before the last seen event, because calls that arrive together may be recorded in
another order. An event tells the present state of an invocation, so hearing it twice does no harm."""
RESUMED = 1_000

StillAllowed = Callable[[], Awaitable[Actor]]


class Batch(Struct, frozen=True):
    """Events that came together. ``skipped``: how many were left out before them at most, because they came too fast."""

    events: list[LiveEvent]
    skipped: int


async def follow(
    gateway: Gateway,
    actor: Actor,
    still: StillAllowed,
    webhook_id: str | None = None,
    after: str | None = None,
) -> "Stream":
    """Every event from now on, or from shortly before the invocation ``after``. Close it when nobody watches any more.
    ``still`` is asked now and again who is watching, and raises ``Refused`` when they may not any more."""
    require(actor, "read")
    return Stream(gateway, gateway.runtime.live.join(actor, webhook_id), after, still)


async def watch(
    gateway: Gateway, actor: Actor, still: StillAllowed, webhook_id: str | None = None
) -> "Stream":
    """The newest events in batches, for a person, with the number of events that were left out."""
    require(actor, "read")
    return Stream(gateway, gateway.runtime.live.join(actor, webhook_id, skips=True), None, still)


class Stream:
    def __init__(self, gateway: Gateway, watcher: Watcher, after: str | None, still: StillAllowed) -> None:
        self._gateway = gateway
        self._still = still
        self._watcher = watcher
        self._after = after
        self._checked = asyncio.get_running_loop().time()

    def close(self) -> None:
        self._gateway.runtime.live.leave(self._watcher)

    async def events(self) -> AsyncIterator[LiveEvent | None]:
        """Yields None when nothing came for a while. Ends with the server, or when the reader may not watch any more."""
        async for batch in self.batches(HEARTBEAT):
            if not batch.events:
                yield None
            for event in batch.events:
                if not await self._may_go_on():
                    return
                yield event

    async def batches(self, tick: float) -> AsyncIterator[Batch]:
        """Yields an empty batch when nothing came for ``tick`` seconds. Ends as ``events`` does."""
        watcher = self._watcher
        if self._after is not None and (missed := await self._missed(self._after)):
            yield Batch(missed, 0)
        while not watcher.closed:
            with suppress(TimeoutError):
                await asyncio.wait_for(watcher.news.wait(), tick)
            watcher.news.clear()
            if not await self._may_go_on():
                return
            missed = []
            if watcher.lost:
                watcher.lost = False
                now = self._gateway.clock()
                missed = await self._missed(self._after or first_id_at("inv", now - OVERLAP))
            batch = Batch([*missed, *watcher.waiting.values()], watcher.skipped)
            self._after = max([self._after or "", *watcher.waiting]) or None
            watcher.waiting.clear()
            watcher.skipped = 0
            yield batch

    async def _may_go_on(self) -> bool:
        now = asyncio.get_running_loop().time()
        if now - self._checked < CHECK_EVERY:
            return True
        try:
            require(await self._still(), "read")
        except Refused:
            return False
        self._checked = now
        return True

    async def _missed(self, after: str) -> list[LiveEvent]:
        """The calls that were recorded since, the oldest first; if that is very much, only the newest part."""
        criteria = HistoryFilter(
            webhook_id=self._watcher.webhook_id,
            since=max(0.0, min(time_of(after), self._gateway.clock()) - OVERLAP),
        )
        rows: list[Story] = []
        before: str | None = None
        while len(rows) < RESUMED:
            page = await self._gateway.store.history.page(criteria, 200, before)
            rows += page.rows
            before = page.next_before
            if before is None:
                break
        self._after = max([after, *(row.invocation.id for row in rows)])
        return [LiveEvent("invocation", summary_of(row)) for row in reversed(rows)]
