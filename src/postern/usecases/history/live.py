"""Watching calls as they come in: each invocation when it is recorded, and again whenever its deliveries
move."""

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
"""Seconds. A stream goes on for at most so long after its reader was signed out or deleted."""
OVERLAP = 10.0
"""Seconds before the last seen event from which a resumed stream goes on: calls that arrive together may be
recorded in another order. A client takes each event as the present state of its invocation, so hearing one
twice does no harm."""
RESUMED = 1_000


Check = Callable[[], Awaitable[Actor]]


class Batch(Struct, frozen=True):
    """What has come in together. ``skipped``: how many changes were left out before it, at most, because the reader
    was slower than they came, or because nobody could have followed them."""

    events: list[LiveEvent]
    skipped: int


async def follow(
    gateway: Gateway, actor: Actor, still: Check, webhook_id: str | None = None, after: str | None = None
) -> "Stream":
    """Every event from now on, or from shortly before the invocation ``after``. Close it when nobody watches
    any more.

    ``still`` says who is asking, now and again: it raises ``Refused`` when they may not any more.
    """
    require(actor, "read")
    return Stream(gateway, gateway.runtime.live.join(actor, webhook_id), after, still)


async def watch(gateway: Gateway, actor: Actor, still: Check, webhook_id: str | None = None) -> "Stream":
    """For a person who looks on: the newest events, in batches, with how many were left out where there were too
    many."""
    require(actor, "read")
    return Stream(gateway, gateway.runtime.live.join(actor, webhook_id, skips=True), None, still)


class Stream:
    def __init__(self, gateway: Gateway, watcher: Watcher, after: str | None, still: Check) -> None:
        self._gateway = gateway
        self._still = still
        self._watcher = watcher
        self._after = after
        self._checked = asyncio.get_running_loop().time()

    def close(self) -> None:
        self._gateway.runtime.live.leave(self._watcher)

    async def events(self) -> AsyncIterator[LiveEvent | None]:
        """Ends when the server does, or when whoever follows may not any more. None when there was nothing
        for a while."""
        async for event in self._all():
            if not await self._may_go_on():
                return
            yield event

    async def batches(self, tick: float) -> AsyncIterator[Batch]:
        """As ``events``, together what came together; an empty one when there was nothing for so long."""
        watcher = self._watcher
        while not watcher.closed:
            with suppress(TimeoutError):
                await asyncio.wait_for(watcher.news.wait(), tick)
            watcher.news.clear()
            if not await self._may_go_on():
                return
            batch = Batch(list(watcher.waiting.values()), watcher.skipped)
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

    async def _all(self) -> AsyncIterator[LiveEvent | None]:
        watcher = self._watcher
        if self._after is not None:
            async for event in self._missed(self._after):
                yield event
        while not watcher.closed:
            try:
                await asyncio.wait_for(watcher.news.wait(), HEARTBEAT)
            except TimeoutError:
                yield None
                continue
            watcher.news.clear()
            if watcher.lost:
                watcher.lost = False
                async for event in self._missed(
                    self._after or first_id_at("inv", self._gateway.clock() - OVERLAP)
                ):
                    yield event
            while watcher.waiting:
                _, event = watcher.waiting.popitem(last=False)
                self._after = max(self._after or "", event.invocation_id)
                yield event

    async def _missed(self, after: str) -> AsyncIterator[LiveEvent]:
        """What was recorded since, the oldest first; of very much, the newest part."""
        wanted = HistoryFilter(webhook_id=self._watcher.webhook_id, since=max(0.0, time_of(after) - OVERLAP))
        rows: list[Story] = []
        before: str | None = None
        while len(rows) < RESUMED:
            page = await self._gateway.store.history.page(wanted, 200, before)
            rows += page.rows
            before = page.next_before
            if before is None:
                break
        for row in reversed(rows):
            self._after = max(self._after or "", row.invocation.id)
            yield LiveEvent("invocation", summary_of(row))
