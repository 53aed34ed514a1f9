"""The state of this process: who waits, who watches, what is at work, and that it is about to end."""

import asyncio
import time
from collections import Counter
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

import msgspec

from postern.core.answer import WorkflowResponse
from postern.core.history.invocation import Status
from postern.core.limits import Limits
from postern.core.operations.retention import REJECTED_BYTES
from postern.core.watch.alarms import Incident
from postern.observe.calls import CallLog
from postern.stores.sql import wake
from postern.usecases.runtime.directory import Directory
from postern.usecases.runtime.endings import Endings
from postern.usecases.runtime.key_sets import KeySets
from postern.usecases.runtime.live_feed import LiveFeed

T = TypeVar("T")

PATIENCE = 22.0
"""Seconds that callers may still wait when the process is asked to end, before the server closes their connections."""


RARELY, OFTEN = 2.0, 0.25
"""Seconds after which a waiting caller's row is read without a wake-up, while other processes are heard and while not."""


class CallerWait(asyncio.Event):
    """Set when the row has to be read. ``answer`` is there if the row's answer is known here."""

    def __init__(self) -> None:
        super().__init__()
        self.answer: WorkflowResponse | None = None

    async def within(self, seconds: float) -> None:
        """Waits until it is set, which happens after this time at the latest."""
        # Not `asyncio.timeout`, which takes three times as long: every caller waits here.
        at_the_latest = asyncio.get_running_loop().call_later(seconds, self.set)
        try:
            await self.wait()
        finally:
            at_the_latest.cancel()


class Waiters:
    """Callers of this process who wait for a workflow's answer, by their delivery's key, or listeners who wait for calls, by
    their ids. Everything handed on here was written to the database before."""

    def __init__(self) -> None:
        self._events: dict[str, set[CallerWait]] = {}
        self.look_every = OFTEN
        """Seconds after which a waiting caller's row is read without a wake-up."""
        self.time_is_up = False
        """The process ends: nobody may go on waiting."""

    @contextmanager
    def waiting(self, key: str) -> Iterator[CallerWait]:
        event = CallerWait()
        self._events.setdefault(key, set()).add(event)
        try:
            yield event
        finally:
            self._events[key].discard(event)
            if not self._events[key]:
                del self._events[key]

    def wake(self, key: str, answer: WorkflowResponse | None = None) -> None:
        for event in self._events.get(key, ()):
            event.answer = event.answer or answer
            event.set()

    def wake_all(self) -> None:
        for key in self._events:
            self.wake(key)

    def send_away(self) -> None:
        self.time_is_up = True
        self.wake_all()

    def __contains__(self, key: str) -> bool:
        return key in self._events

    def __len__(self) -> int:
        return sum(len(waiting) for waiting in self._events.values())


class EngineAway(msgspec.Struct, frozen=True):
    since: float
    """By ``time.monotonic``."""
    detail: str
    not_before: float = 0.0
    """When it wants to be asked again."""


class LaneState:
    """How this process has found what takes one lane's deliveries."""

    def __init__(self) -> None:
        self.due = asyncio.Event()
        """Set when a delivery becomes due in this process, so that nobody has to poll for it."""
        self.away: EngineAway | None = None
        """Since when every start has failed for want of the engine; None if the last one was answered."""
        self.back = asyncio.Event()
        """Set when the engine is there again: what was tried meanwhile is due."""
        self.took_at = float("-inf")
        """When the last start was taken, by ``time.monotonic``."""


TroubleKind = Literal[
    "calls not stored",
    "changes not followed",
    "webhooks not served",
    "engine cannot start",
    "calls wait",
    "calls lost",
    "workflow files broken",
    "nothing deleted",
    "clock set back",
]


class GatewayTrouble(msgspec.Struct, frozen=True):
    """Something that somebody has to fix; see `readiness.py`. There is one of each kind at most."""

    kind: TroubleKind
    sentence: str
    detail: str
    """The reason, without what it means for calls."""
    status: Status | None = None
    """Calls in this status are meant. They can be replayed."""


class Listeners:
    """Listeners that ask this process for calls."""

    def __init__(self) -> None:
        self._waiting = Waiters()
        self.wake, self.waiting = self._waiting.wake, self._waiting.waiting
        self.closed = False

    def close(self) -> None:
        """Sends everybody away, because the process is about to end."""
        self.closed = True
        self._waiting.wake_all()


TRIM_AFTER = REJECTED_BYTES // 8
"""Bytes of one webhook's rejected calls since it was last trimmed."""


class Rejections:
    """The bytes of rejected calls that this process has stored since each webhook was last trimmed. So a flood is noticed at
    once, and what comes faster than it is trimmed is only counted."""

    def __init__(self) -> None:
        self._since: Counter[str] = Counter()
        self._full: set[str] = set()
        self.any_full = asyncio.Event()
        self._counted: Counter[tuple[str, int, str]] = Counter()

    def find_room(self, webhook_id: str, size: int) -> bool:
        """Whether there is room for one more call, which then has it."""
        if self._since[webhook_id] + size > REJECTED_BYTES:
            return False
        self._since[webhook_id] += size
        if self._since[webhook_id] >= TRIM_AFTER:
            self._full.add(webhook_id)
            self.any_full.set()
        return True

    def take(self) -> list[str]:
        self.any_full.clear()
        taken = list(self._full)
        self._full.clear()
        for webhook_id in taken:
            del self._since[webhook_id]
        return taken

    def count(self, webhook_id: str, code: str, at: float) -> None:
        """Counts a call that is not recorded."""
        self._counted[webhook_id, int(at // 60), code] += 1

    def take_counted(self) -> Counter[tuple[str, int, str]]:
        """By webhook, minute and code."""
        taken, self._counted = self._counted, Counter()
        return taken

    def put_back(self, counted: Counter[tuple[str, int, str]]) -> None:
        self._counted += counted


@dataclass
class Runtime:
    directory: Directory
    live: LiveFeed
    limits: Limits = field(default_factory=lambda: Limits(time.monotonic))
    waiters: Waiters = field(default_factory=Waiters)
    listeners: Listeners = field(default_factory=Listeners)
    key_sets: KeySets = field(default_factory=KeySets)
    engine: LaneState = field(default_factory=LaneState)
    """The lane of all webhooks that have none of their own."""
    own_lanes: dict[str, LaneState] = field(default_factory=dict)
    """By webhook."""
    lanes_due: set[str | None] = field(default_factory=set)
    """Webhooks' own lanes in which something became due in this process; None: perhaps in others, too."""
    lanes_news: asyncio.Event = field(default_factory=asyncio.Event)
    bytes_of_lanes: int = 0
    """Bodies of the starts that are under way in webhooks' own lanes."""
    call_log: CallLog = field(default_factory=CallLog)
    rejections: Rejections = field(default_factory=Rejections)
    rechecks: dict[str, Any] = field(default_factory=dict)
    """The looks through rejected calls that are under way, by webhook (``usecases/calls/readmission.py``)."""
    exporting: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while a page of an export is made: eight at once kept callers waiting."""
    counting: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while the calls of all webhooks are counted."""
    last_day: dict[str, int] = field(default_factory=dict)
    """The last counts, which need not be counted again before ``last_day_until``, by ``time.monotonic``."""
    last_day_until: float = float("-inf")
    endings: Endings = field(default_factory=Endings)
    troubles: list[GatewayTrouble] = field(default_factory=list)
    well_from: float | None = None
    """The earliest moment at which the log may say that all troubles are over; None if it has said so."""
    troubles_seen: dict[str, tuple[float, str]] = field(default_factory=dict)
    """The troubles since an incident told of them last: by kind, since when, and the sentence."""
    incidents: list[Incident] = field(default_factory=list)
    """The incidents that were open at the last look."""
    may_be_over: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when somebody has seen that no call of an open incident is left."""
    engine_ran_at: float | None = None
    """When the engine of this process was last seen at work; None before the first look."""
    engine_asked_at: float = float("-inf")
    engine_found_away: str = ""
    """The engine's own words then, while calls wait that another process could not start."""
    kept_for_now: str = ""
    """The reason why old calls are not deleted now."""
    clock_is_trusted: bool = False
    """Nothing is given up and deleted for its age by a clock that may be wrong."""
    clock_set_back: str = ""
    """By how much it was lately."""
    ending: bool = False
    """The process is about to end: nobody may begin to wait for a workflow's answer."""
    unsettled: dict[str, int] = field(default_factory=dict)
    """Deliveries whose start is over and not yet written down because the store is away, with the number of tries."""
    _background: set[asyncio.Task[Any]] = field(init=False, default_factory=set)
    _patient_until: float = field(init=False, default=0.0)

    def lane(self, name: str) -> LaneState:
        return self.own_lanes.setdefault(name, LaneState()) if name else self.engine

    def starts_due(self, lane: str | None = None) -> None:
        """Something became due: in this lane, or in none that is known."""
        if not lane:
            self.engine.due.set()
        if lane != "":
            self.lanes_due.add(lane)
            self.lanes_news.set()

    def hear(self, announcement: str) -> None:
        """Wakes whom it concerns what another process has announced."""
        word, _, about = announcement.partition(":")
        match word:
            case wake.CONFIGURATION:
                self.directory.refresh_soon()
            case wake.DUE:
                self.starts_due()
            case wake.ANSWER:
                self.waiters.wake(about)
            case wake.HANDED:
                self.listeners.wake(about)
            case wake.LISTENING:
                self.waiters.look_every = RARELY
                self.directory.refresh_soon()
                self.starts_due()
                self.waiters.wake_all()
            case wake.DEAF:
                self.waiters.look_every = OFTEN
            case _:
                pass  # a newer version of the program announced it

    async def follow_changes(self) -> None:
        """Takes in webhooks that other processes change, for as long as this is awaited."""
        await self.directory.follow()

    def background(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Begins work that outlives the call that it is done for. To await it raises its errors."""
        task = asyncio.create_task(work)
        self._background.add(task)  # the event loop keeps no reference to it
        task.add_done_callback(self._finished)
        return task

    async def finish(self, seconds: float) -> None:
        """Waits for the work in the background, so many seconds at most."""
        if self._background:
            await asyncio.wait(self._background, timeout=seconds)

    def _finished(self, task: asyncio.Task[Any]) -> None:
        self._background.discard(task)
        if not task.cancelled():
            task.exception()

    def begin_to_end(self) -> int:
        """Lets nobody begin to wait, sends watchers and listeners away, and returns how many callers still wait for a
        workflow's answer. Called again and again: after a while those callers hear that their time is up."""
        if not self.ending:
            self.ending = True
            self._patient_until = time.monotonic() + PATIENCE
            self.live.close()
            self.listeners.close()
        elif time.monotonic() > self._patient_until:
            self.waiters.send_away()
        return len(self.waiters)
