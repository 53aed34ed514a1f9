"""Starts due deliveries, batch by batch: claims them with a lease, so that another process takes over what died, and starts
them (`starting`). A start is idempotent on the delivery's key, so nothing is started twice when a lease runs out.

The deliveries of a webhook's own lane wait, are claimed and are held up apart from all others (`Lanes`)."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import monotonic, process_time

from postern.core.deliveries.delivery import LONGEST_WAIT, EngineRejected, EngineUnavailable
from postern.core.documents import DAMAGED
from postern.core.history.invocation import (
    NO_PAYLOAD,
    Content,
    Delivery,
    StoreUnavailable,
    payload_of,
    traceparent_of,
)
from postern.observe.calls import call_counts
from postern.observe.logs import log
from postern.observe.metrics import Numbers
from postern.usecases.deliveries import holds
from postern.usecases.deliveries.starting import fail, start_delivery
from postern.usecases.deliveries.turns import supersede_by
from postern.usecases.runtime.gateway import Gateway
from postern.usecases.runtime.loop import Loop
from postern.usecases.runtime.turns import tells_ends, turns_of

LEASE = 30.0
BATCH = 100
DELIVERIES_AT_ONCE = 200
BYTES_AT_ONCE = 64 * 1024 * 1024
"""Bodies of the starts that are under way. At more, no other start begins: each body is in memory several times."""
LONGEST_BATCH = 0.5
"""Seconds. A slower start does not hold up those behind it, as long as fewer than ``DELIVERIES_AT_ONCE`` are under way."""
BROUGHT_FORWARD = 1_000
"""Deliveries in one step: calls are stored between the steps."""
OF_A_LANE, IN_A_BATCH = 20, 10
"""The starts that are under way in a webhook's own lane, and those of a batch."""
BYTES_OF_A_LANE = 8 * 1024 * 1024
BYTES_OF_LANES = 256 * 1024 * 1024
"""Bodies of the starts that are under way in one webhook's own lane, and in all of them together."""
CHECK_DELIVERIES_EVERY = 1.0
MEASURED_SELDOM = 50
"""Between two looks at all that waits pass so many times as long as one takes: it is longer with each lane."""
LONGEST_PAUSE = 15.0
TRIES_OF_LANES = 10
"""A second, in all webhooks' own lanes whose targets are away: a thousand dead targets must leave time for the others."""


async def catch_up(gateway: Gateway) -> int:
    """Brings forward what waits for a time that only a wrong clock could have set, or for a release that was interrupted."""
    await holds.go_on(gateway)
    count = await gateway.store.deliveries.catch_up(gateway.clock(), LEASE, LONGEST_WAIT)
    if count:
        log.warning("the clock was set back: deliveries that waited for a later time do not", count=count)
    return count


class Dispatcher:
    """Starts what is due in one lane. Any number of processes may run one on the same database."""

    def __init__(self, gateway: Gateway, lane: str = "") -> None:
        self._gateway = gateway
        self.lane = lane
        self._state = gateway.runtime.lane(lane)
        self._batch, self._at_once = (IN_A_BATCH, OF_A_LANE) if lane else (BATCH, DELIVERIES_AT_ONCE)
        self._most_bytes = BYTES_OF_A_LANE if lane else BYTES_AT_ONCE
        self._pause = self._measure_at = 0.0
        self._under_way: dict[asyncio.Task[str], int] = {}
        """The starts that are under way, with the sizes of their bodies."""
        self._unavailable = False
        self._more = False
        """Something was due the last time, so there may be more."""
        self._loop = Loop("deliveries", self._work, CHECK_DELIVERIES_EVERY, self._state.due.wait)
        self._calls_first = CallsFirst(self._loop.rest)
        self.stop = self._loop.stop

    async def run(self) -> None:
        await self._loop.run()
        await self.finish()

    async def finish(self) -> None:
        """Waits until every start that was begun is written down."""
        while self._under_way:
            await asyncio.wait(self._under_way)

    async def round(self) -> int:
        """Starts one batch, and returns how many were claimed. While the engine is away, one delivery at a time tries it, so
        that the others do not collect ever longer waits. If the engine refuses only one start, as of a broken workflow, the
        others go on."""
        await self._wait_for_room()
        self._calls_first.begin()
        gateway = self._gateway
        store, due = gateway.store, self._state.due
        now = gateway.clock()
        if self._state.back.is_set():
            await self._try_all_again(now)
        if not (due.is_set() or self._more or await self._any_due(now) or await self._probe(now)):
            return 0
        due.clear()
        if self.lane and gateway.runtime.bytes_of_lanes >= BYTES_OF_LANES:
            return 0
        # How a webhook's own lane does is not known until it has taken one: so a dead one has one body at hand at most.
        one_alone = bool(self._pause or (self.lane and self._state.took_at < 0))
        room = self._most_bytes - sum(self._under_way.values())
        batch = await self._claim(now, 1 if one_alone else self._batch, room)
        self._more = bool(batch)
        # The result of some starts is known and not yet written down. The claim has renewed their leases.
        claimed = [delivery for delivery in batch if delivery.key not in gateway.runtime.unsettled]
        if not claimed:
            return 0
        contents = await store.history.contents([delivery.invocation_id for delivery in claimed])
        starts = []
        for delivery in claimed:
            content = contents.get(delivery.invocation_id)
            start = asyncio.create_task(self._start(delivery, content), name=delivery.key)
            start.add_done_callback(self._ended)
            starts.append(start)
            size = 0 if content is None or content.body is None else len(content.body)
            self._under_way[start] = size
            gateway.runtime.bytes_of_lanes += size if self.lane else 0
        _, slow = await asyncio.wait(starts, timeout=None if one_alone else LONGEST_BATCH)
        if not slow and not self._unavailable:
            self._pause = 0.0
        await self._calls_first.let_calls_in()
        return len(claimed)

    async def _any_due(self, now: float) -> bool:
        if (turns := turns_of(self._gateway, self.lane)) is None:
            return await self._gateway.store.deliveries.any_due(now, self.lane)
        return await self._gateway.store.turns.any_due(
            self.lane, turns, tells_ends(self._gateway, self.lane), now
        )

    async def _claim(self, now: float, most: int, most_bytes: int) -> list[Delivery]:
        if (turns := turns_of(self._gateway, self.lane)) is None:
            return await self._gateway.store.deliveries.claim(now, LEASE, most, most_bytes, self.lane)
        tells = tells_ends(self._gateway, self.lane)
        claimed = await self._gateway.store.turns.claim(self.lane, turns, tells, now, LEASE, most, most_bytes)
        for delivery in claimed:
            if turns.quiet is not None and delivery.turn is not None:
                await supersede_by(self._gateway, delivery)
        return claimed

    async def _try_all_again(self, now: float) -> None:
        back, self._pause = self._state.back, 0.0
        back.clear()
        try:
            while await self._bring_forward(now, BROUGHT_FORWARD) == BROUGHT_FORWARD:
                pass
        except StoreUnavailable:
            back.set()
            raise

    async def _probe(self, now: float) -> bool:
        """If nothing is due, brings one delivery forward, to try an engine that was away."""
        away = self._state.away
        if not self._pause or away is None or time.monotonic() < away.not_before:
            return False
        return await self._bring_forward(now, 1) == 1

    async def _bring_forward(self, now: float, most: int) -> int:
        gateway, engine = self._gateway, self._gateway.engine
        # Another process may hold a lease on them. The embedded engine has one gateway.
        claimed_until = now + (0.0 if engine is not None and engine.name == "embedded" else LEASE)
        under_way = [start.get_name() for start in self._under_way]
        return await gateway.store.deliveries.bring_forward(now, claimed_until, under_way, most, self.lane)

    def _ended(self, start: asyncio.Task[str]) -> None:
        size = self._under_way.pop(start)
        self._gateway.runtime.bytes_of_lanes -= size if self.lane else 0
        self._unavailable |= not start.cancelled() and start.result() == "unavailable"

    async def _wait_for_room(self) -> None:
        """Waits until another batch may begin: there is room, and after a failure it is known how the others went."""
        while not self._unavailable and (
            len(self._under_way) > self._at_once - self._batch
            or sum(self._under_way.values()) >= self._most_bytes
        ):
            await asyncio.wait(self._under_way, return_when=asyncio.FIRST_COMPLETED)
        if self._unavailable:
            await self.finish()
            self._unavailable = False
            self._pause = min(max(self._pause * 2, 0.5), self._longest_pause())
            await self._loop.rest(self._pause, self._state.back.wait())

    def _longest_pause(self) -> float:
        others = self._gateway.runtime.own_lanes.values() if self.lane else ()
        return max(LONGEST_PAUSE, sum(state.away is not None for state in others) / TRIES_OF_LANES)

    async def _start(self, delivery: Delivery, content: Content | None) -> str:
        """Says how it went. Raises nothing: what could not be written down comes back when its lease is over."""
        try:
            payload = None if content is None else payload_of(content)
            if content is None or payload is None or delivery.is_damaged:
                await fail(self._gateway, delivery, DAMAGED if delivery.is_damaged else NO_PAYLOAD)
                return "failed"
            delivery.traceparent = traceparent_of(content)
            await start_delivery(self._gateway, delivery, payload.text)
        except EngineUnavailable as trouble:
            # One that has gone to another lane says nothing of those here.
            return "later" if trouble.only_this or delivery.lane != self.lane else "unavailable"
        except EngineRejected:
            return "failed"
        except StoreUnavailable as trouble:
            log.warning("a start could not be recorded", delivery=delivery.key, error=str(trouble))
            return "unavailable"
        return "started"

    async def _work(self) -> int:
        started = await self.round()
        # Whatever becomes due there sets the event.
        self._loop.every = max(CHECK_DELIVERIES_EVERY, self._pause if self.lane else 0.0)
        if not started and not self.lane:
            if (began := monotonic()) >= self._measure_at:
                await measure(self._gateway)
                self._measure_at = monotonic() + MEASURED_SELDOM * (monotonic() - began)
        elif not started and not self._under_way and not await self._waits():
            self.stop()
        return started

    async def _waits(self) -> bool:
        """Whether something in a webhook's own lane is due soon, or nothing has been taken there lately."""
        next_at = await self._gateway.store.deliveries.next_due(self.lane)
        if next_at is None:
            self._state.away = None  # nobody waits for it, and it takes no try from the others
        if next_at is None or self._state.due.is_set():
            return self._state.due.is_set()
        return (
            bool(self._pause or self._state.away)
            or next_at < self._gateway.clock() + 2 * CHECK_DELIVERIES_EVERY
        )


class Lanes:
    """Starts what is due: the engine's lane always, and each webhook's own as long as something in it is due soon."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._running: dict[str, tuple[Dispatcher, asyncio.Task[None]]] = {}
        self._look_at = 0.0
        self._loop = Loop(
            "lanes",
            self._work,
            CHECK_DELIVERIES_EVERY,
            gateway.runtime.lanes_news.wait,
            catch_up=lambda: catch_up(gateway),
        )

    async def run(self) -> None:
        if self._gateway.engine is not None:
            self._begin("")
        await self._loop.run()
        await asyncio.gather(*(task for _, task in self._running.values()), return_exceptions=True)

    def stop(self) -> None:
        self._loop.stop()
        for dispatcher, _ in self._running.values():
            dispatcher.stop()

    async def _work(self) -> None:
        runtime = self._gateway.runtime
        runtime.lanes_news.clear()
        named, runtime.lanes_due = runtime.lanes_due, set()
        due = {lane for lane in named if lane is not None}
        if None in named or time.monotonic() >= self._look_at:
            self._look_at = time.monotonic() + CHECK_DELIVERIES_EVERY
            waiting, now = await self._gateway.store.deliveries.lanes(), self._gateway.clock()
            due |= {lane for lane, next_at in waiting.items() if next_at <= now}
        for lane in due:
            runtime.lane(lane).due.set()
            if lane not in self._running and self._has_receiver(lane):
                self._begin(lane)

    def _has_receiver(self, lane: str) -> bool:
        webhook = self._gateway.runtime.directory.by_id(lane)
        # Where the webhook is not served any more, what waits is tried too, and given up in the end.
        return self._gateway.engine is not None or webhook is None or webhook.target is not None

    def _begin(self, lane: str) -> None:
        dispatcher = Dispatcher(self._gateway, lane)
        task = asyncio.create_task(dispatcher.run())
        self._running[lane] = dispatcher, task
        task.add_done_callback(lambda done: self._ended(lane, done))

    def _ended(self, lane: str, task: asyncio.Task[None]) -> None:
        del self._running[lane]
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a lane has ended", lane=lane, exc_info=error)
        if self._gateway.runtime.lane(lane).due.is_set() and not self._loop.stopping:
            self._gateway.runtime.starts_due(lane)  # it became so while the last round ended


async def measure(gateway: Gateway) -> None:
    count, oldest = await gateway.store.deliveries.backlog(gateway.clock())
    Numbers.deliveries_waiting.set(count)
    Numbers.oldest_due_seconds.set(oldest)
    Numbers.schedules_paused.set(await gateway.store.schedules.paused())


THEIRS = 4.0
"""Calls have the process to themselves for so many times as long as the last round of starts has taken."""
BUSY = 0.5
"""The part of the time from which calls keep the process busy. A start costs more than a call: the rest is too little."""
LOOK = 0.003
"""Seconds after which it shows whether calls keep the process busy."""
REMEMBERED = 0.1
LONGEST = 0.5
"""Seconds after which the next round comes, however many calls there are."""

_SCHEDULING = Path("/proc/self/schedstat")


class CallsFirst:
    """As long as calls keep the process busy, they go before starts."""

    def __init__(self, pause: Callable[[float], Awaitable[None]]) -> None:
        self._pause = pause
        self._need = 0.0
        """The part of the time between rounds that calls have needed lately."""
        self.begin()

    def begin(self) -> None:
        """A round of starts begins."""
        self._answered, self._used = call_counts.answered, time_used()

    async def let_calls_in(self) -> None:
        """A round of starts is over."""
        if call_counts.answered == self._answered:
            return
        began, used = monotonic(), time_used()
        theirs = min(LONGEST, (used - self._used) * THEIRS)
        await self._pause(theirs if self._need >= BUSY else min(LOOK, theirs))
        lasted = monotonic() - began
        needed = (time_used() - used) / lasted
        self._need += (needed - self._need) * min(1.0, lasted / REMEMBERED)


def time_used() -> float:
    """Seconds that this process has worked, or on Linux also waited for the processor, which others may keep from it."""
    try:
        waited = int(_SCHEDULING.read_bytes().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        waited = 0.0
    return process_time() + waited
