"""Everything a use case works with, in one place. Made by ``wiring``, handed to every use case."""

import asyncio
import hmac
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

from postern.core.access.accounts import Actor, Level
from postern.core.address import Allowlist, reach_of
from postern.core.deliveries.delivery import ResponseSlot, Workflow
from postern.core.limits import Limits
from postern.core.operations.retention import Keeping
from postern.core.problems import Refused
from postern.observe import CallLog
from postern.usecases.ports import Engine, Fetch, PresetShelf, Store
from postern.usecases.runtime.directory import Directory
from postern.usecases.runtime.live_feed import Hub
from postern.usecases.runtime.rejections import Rejections

T = TypeVar("T")

PATIENCE = 22.0
"""Seconds that callers may still wait when the process is told to end. Less than the server's
(`surfaces/http/server.py`), which then cuts what is left."""

GO_PUBLIC = (
    "A sender on the internet needs a public one: start a tunnel (cloudflared, ngrok, tailscale funnel, …) "
    "and set POSTERN_BASE_URL to its address."
)


class Waiters:
    """Callers of this process that wait for a workflow's answer, by their delivery's key. The database row is
    the truth; this only says when to look at it."""

    def __init__(self) -> None:
        self._events: dict[str, set[asyncio.Event]] = {}
        self.look_every = 0.25
        """How often a waiting caller's row is read without a wake-up; see `waking.py`."""
        self.time_is_up = False
        """Nobody may wait on: the process ends."""

    def register(self, key: str) -> asyncio.Event:
        event = asyncio.Event()
        self._events.setdefault(key, set()).add(event)
        return event

    def leave(self, key: str, event: asyncio.Event) -> None:
        waiting = self._events.get(key)
        if waiting is not None:
            waiting.discard(event)
            if not waiting:
                del self._events[key]

    def wake(self, key: str) -> None:
        for event in self._events.get(key, ()):
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


async def _nothing_known() -> list[Workflow] | None:
    return None


@dataclass
class Gateway:
    store: Store
    directory: Directory
    presets: PresetShelf
    base_url: str
    callback_url: str
    """Where workflows reach the response action's door: the base address, or the loopback one for the
    embedded engine."""
    response_keys: list[bytes]
    """The first makes response tokens; the others made those of workflows that were started before the key
    was changed."""
    engine: Engine | None = None
    """None in a process that only changes or reads things (the CLI): deliveries are left for one that
    serves."""
    limits: Limits = field(default_factory=Limits)
    waiters: Waiters = field(default_factory=Waiters)
    due: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a delivery has become due in this process, so that nobody has to poll for it."""
    call_log: CallLog = field(default_factory=CallLog)
    clock: Callable[[], float] = time.time
    ending: bool = False
    """The process is about to end: nobody may begin to wait for a workflow's answer any more."""
    admin_key_digest: bytes | None = None
    """SHA-256 of POSTERN_ADMIN_KEY, where one is given."""
    known_workflows: Callable[[], Awaitable[list[Workflow] | None]] = _nothing_known
    """How a process without an engine finds out which workflows there are."""

    workflows: Path | None = None
    """The file or folder of the embedded engine's workflows; None with another engine."""
    fetch: Fetch | None = None
    outbound: Allowlist | None = None
    """The private addresses that were opened to fetches; None in a process that does not fetch by itself."""
    keeping: Keeping = field(default_factory=Keeping)
    settings: list[dict[str, Any]] = field(default_factory=list)
    """What the process was started with, as it may be shown."""
    alarms: list[str] = field(default_factory=list)
    """What is not well and somebody has to mend, in sentences; see `readiness.py`."""
    rejections: Rejections = field(default_factory=Rejections)
    _finishing: set[asyncio.Task[Any]] = field(init=False, default_factory=set)
    _patient_until: float = field(init=False, default=0.0)
    live: Hub = field(init=False)
    """Who watches calls as they come in."""

    def __post_init__(self) -> None:
        self.live = Hub(self.store.history, self.clock)

    def background(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Begin work that outlives the call it is done for. Its outcome is written down by itself; who waits
        for it hears what it raises."""
        task = asyncio.create_task(work)
        self._finishing.add(task)  # the event loop itself would let go of it half-way
        task.add_done_callback(self._finished)
        return task

    async def finish(self, seconds: float) -> None:
        """What was begun in the background comes to its end, or has had its time."""
        if self._finishing:
            await asyncio.wait(self._finishing, timeout=seconds)

    def _finished(self, task: asyncio.Task[Any]) -> None:
        self._finishing.discard(task)
        if not task.cancelled():
            task.exception()

    def begin_to_end(self) -> int:
        """How many callers still wait for a workflow's answer; no more will. Whoever only watches is sent
        away. Asked again and again while some wait: those who would wait for longer than the server may hear
        that their time is up."""
        if not self.ending:
            self.ending = True
            self._patient_until = time.monotonic() + PATIENCE
            self.live.close()
        elif time.monotonic() > self._patient_until:
            self.waiters.send_away()
        return len(self.waiters)

    def response_token(self, key: str) -> str:
        """Rebuilt from the delivery's key, so that a start tried again after a crash carries the same one and
        none is stored."""
        return _token(self.response_keys[0], key)

    def is_response_token(self, token: str, key: str) -> bool:
        given = token.encode("utf-8", "replace")
        return any(hmac.compare_digest(_token(one, key).encode(), given) for one in self.response_keys)

    def response_slot(self, invocation_id: str, key: str, deadline: float) -> ResponseSlot:
        return ResponseSlot(
            f"{self.callback_url}/api/v1/invocations/{invocation_id}/response",
            self.response_token(key),
            deadline,
        )

    def webhook_url(self, short_code: str) -> str:
        return f"{self.base_url}/webhook/{short_code}"

    @property
    def out_of_reach(self) -> str:
        """What stands beside a webhook's URL where no sender on the internet can reach it; else nothing."""
        who = reach_of(self.base_url)
        return f"Only {who} can reach this address. {GO_PUBLIC}" if who else ""


def _token(response_key: bytes, key: str) -> str:
    return "rt_" + hmac.new(response_key, key.encode(), sha256).hexdigest()


def require(actor: Actor, level: Level) -> None:
    """Every use case names the level it needs, first thing."""
    if not actor.may(level):
        raise Refused("access_denied", f"this needs the access level {level}; yours is {actor.level}")
