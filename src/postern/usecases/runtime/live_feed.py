"""The live feed: tells those who watch calls as they come in.

Every event is read from the database. The code that records or moves something only says which invocation to look at,
which costs nothing while nobody watches. Once a second the newest ones are read anyway, for what other processes did.
"""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Literal

from msgspec import Struct, field

from postern.core.access.accounts import Actor
from postern.core.history.invocation import HistoryFilter, Story
from postern.core.problems import Refused
from postern.stores.history.reading import History
from postern.usecases.runtime.loop import Loop
from postern.usecases.summary import InvocationSummary, summary_of

MOST_WATCHERS = 200
MOST_OF_ONE = 20
LONGEST_QUEUE = 500
CHECK_CALLS_EVERY = 1.0
GATHER = 0.05
"""Seconds. Calls that come in within them are read together."""
LOOKED_AT = 200
REMEMBERED = 5_000


class LiveEvent(Struct, frozen=True):
    """``invocation``: it is new. ``delivery``: one of its deliveries has moved. ``summary``: its present state."""

    name: Literal["invocation", "delivery"]
    summary: InvocationSummary

    @property
    def invocation_id(self) -> str:
        return self.summary.id


class Watcher(Struct, eq=False):
    webhook_id: str | None
    waiting: OrderedDict[str, LiveEvent] = field(default_factory=OrderedDict)
    """By invocation, so that one which moves again before it was sent is sent once."""
    news: asyncio.Event = field(default_factory=asyncio.Event)
    lost: bool = False
    """It was too slow. It reads what it missed from the history."""
    skips: bool = False
    """It wants the newest only. If it is too slow, the oldest events are left out."""
    skipped: int = 0
    closed: bool = False

    def add(self, event: LiveEvent) -> None:
        if self.webhook_id is not None and event.summary.webhook_id != self.webhook_id:
            return
        earlier = self.waiting.pop(event.invocation_id, None)
        name = event.name if earlier is None else earlier.name
        self.waiting[event.invocation_id] = LiveEvent(name, event.summary)
        if len(self.waiting) > LONGEST_QUEUE:
            if self.skips:
                self.waiting.popitem(last=False)
                self.skipped += 1
            else:
                self.waiting.clear()
                self.lost = True
        self.news.set()


class LiveFeed:
    def __init__(self, history: History, clock: Callable[[], float]) -> None:
        self._history = history
        self._clock = clock
        self._watchers: dict[Watcher, str] = {}
        self._touched: OrderedDict[str, None] = OrderedDict()
        self._news = asyncio.Event()
        self._known: OrderedDict[str, InvocationSummary] = OrderedDict()
        self._looking: asyncio.Task[None] | None = None
        self._closed = False

    def touch(self, invocation_id: str) -> None:
        """This invocation was recorded, or a delivery of it moved."""
        if self._watchers:
            self._touched[invocation_id] = None
            if len(self._touched) > LOOKED_AT:
                # The look at the newest ones may still find it.
                self._touched.popitem(last=False)
                for watcher in self._watchers:
                    watcher.skipped += watcher.skips
            self._news.set()

    def join(self, actor: Actor, webhook_id: str | None, skips: bool = False) -> Watcher:
        """``skips``: a slow reader gets the number of events that were left out, instead of all of them later."""
        if (
            len(self._watchers) >= MOST_WATCHERS
            or Counter(self._watchers.values())[actor.owner] >= MOST_OF_ONE
            or self._closed
        ):
            raise Refused("rate_limited", "Too many live views are open; close one first.", retry_after=10)
        watcher = Watcher(webhook_id, skips=skips)
        self._watchers[watcher] = actor.owner
        if self._looking is None:
            self._looking = asyncio.create_task(self._follow(self._clock()), name="live")
        return watcher

    def leave(self, watcher: Watcher) -> None:
        self._watchers.pop(watcher, None)
        if not self._watchers and self._looking is not None:
            self._looking.cancel()
            self._looking = None
            self._known.clear()
            self._touched.clear()

    def close(self) -> None:
        """Ends every stream, because the server is about to end."""
        self._closed = True
        for watcher in self._watchers:
            watcher.closed = True
            watcher.news.set()

    async def _follow(self, began: float) -> None:
        """Runs as long as somebody watches."""
        now = asyncio.get_running_loop().time
        next_look = 0.0

        async def look() -> None:
            nonlocal next_look
            self._news.clear()
            if now() >= next_look:
                await self._look_at_newest(began, first=next_look == 0.0)
                next_look = now() + CHECK_CALLS_EVERY
            if self._touched:
                touched = list(self._touched)
                self._touched.clear()
                self._publish(await self._history.some(touched))

        await Loop("live", look, CHECK_CALLS_EVERY, self._news.wait, gather=GATHER).run()

    async def _look_at_newest(self, began: float, first: bool) -> None:
        rows = (await self._history.page(HistoryFilter(), LOOKED_AT)).rows
        if first:
            for row in rows:
                # A call that was received before somebody began to watch, and recorded after, is news.
                call = row.invocation
                if call.received_at < began and call.id not in self._touched:
                    self._remember(summary_of(row))
        self._publish(rows)

    def _publish(self, rows: list[Story]) -> None:
        for row in sorted(rows, key=lambda row: row.invocation.id):
            summary = summary_of(row)
            before = self._known.get(summary.id)
            if before == summary:
                continue
            self._remember(summary)
            event = LiveEvent("invocation" if before is None else "delivery", summary)
            for watcher in self._watchers:
                watcher.add(event)

    def _remember(self, summary: InvocationSummary) -> None:
        self._known[summary.id] = summary
        self._known.move_to_end(summary.id)
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
