"""Writes down what callers heard and how runs ended, and asks the engine about runs of which nothing was heard."""

import time

from postern.core.deliveries.delivery import DeliveryState, EngineUnavailable, invocation_of_key
from postern.core.history.invocation import StoreUnavailable
from postern.observe.logs import log
from postern.observe.metrics import counter_of_ends
from postern.usecases.runtime.gateway import Gateway
from postern.usecases.runtime.loop import Loop

CHECK_ENDS_EVERY = 1.0
GATHER = 0.1
"""Seconds. Ends that become known within them are written down together."""
ASKED_AT_ONCE = 200
LEASE = 60.0
LONGEST_WAIT = 120.0
SHARE_OF_AGE = 0.2
"""A run that has lasted long will last longer, so the engine is asked about it less often."""
LOST_AFTER = 30.0
"""Seconds since the start of a run: the engine may not show a younger one everywhere yet."""
LOST_ASKED_EVERY = 600.0
"""Seconds. Somebody may give the engine its right database back."""


class EndingsLoop:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._ask_at = 0.0
        loop = Loop("endings", self._work, CHECK_ENDS_EVERY, gateway.runtime.endings.news.wait, gather=GATHER)
        self.run, self.stop = loop.run, loop.stop

    async def _work(self) -> bool:
        await self.write()
        now = time.monotonic()
        if now < self._ask_at:
            return False  # woken to write, which happens many times a second
        more = await self.ask()
        self._ask_at = now if more else now + CHECK_ENDS_EVERY
        return more

    async def write(self) -> None:
        gateway = self._gateway
        noticed = gateway.runtime.endings.take()
        if not noticed:
            return
        try:
            written = await gateway.store.endings.note(
                noticed.answered, noticed.ends, noticed.counted, gateway.clock()
            )
        except StoreUnavailable:
            gateway.runtime.endings.put_back(noticed)
            raise
        finally:
            gateway.runtime.endings.over(noticed)
        for key, end in noticed.ends.items():
            if key in written.early:
                gateway.runtime.endings.early(key, end)
            elif key in written.now:
                counter_of_ends(end.state).inc()
                gateway.runtime.live.touch(invocation_of_key(key))
        for lane in written.lanes:
            gateway.runtime.starts_due(lane)
        for answered in noticed.answered:
            gateway.runtime.live.touch(answered.invocation_id)

    async def ask(self) -> bool:
        """Asks the engine how runs ended. Returns whether there are more to ask about."""
        gateway = self._gateway
        engine = gateway.engine
        if engine is None or engine.asked_after is None:
            return False
        now = gateway.clock()
        started = await gateway.store.endings.claim_to_ask(now, LEASE, ASKED_AT_ONCE)
        if not started:
            return False
        try:
            ends = await engine.ends(list(started))
        except EngineUnavailable as trouble:
            log.info("the engine could not be asked how runs ended", error=trouble.detail)
            again = now + engine.asked_after
            await gateway.store.endings.ask_again(
                {key: (delivery.state, again) for key, delivery in started.items()}
            )
            return False
        not_over: dict[str, tuple[DeliveryState, float]] = {}
        for key, (state, started_at) in started.items():
            age, end = abs(now - started_at), ends.get(key)
            if end is not None:
                gateway.runtime.endings.ended(key, end)
            elif key in ends or age < LOST_AFTER:
                wait = min(max(engine.asked_after, age * SHARE_OF_AGE), LONGEST_WAIT)
                not_over[key] = "started", now + wait
            else:
                not_over[key] = "lost", now + LOST_ASKED_EVERY
            if key in not_over and not_over[key][0] != state:
                gateway.runtime.live.touch(invocation_of_key(key))
        if not_over:
            await gateway.store.endings.ask_again(not_over)
        return len(started) == ASKED_AT_ONCE
