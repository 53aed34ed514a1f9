"""Notices that the clock of this machine was set, and has nobody wait for a time that only a wrong clock could have set."""

import time
from datetime import timedelta
from functools import partial

from postern.core.steady_clock import JUMP
from postern.identity import time_of
from postern.observe.logs import log
from postern.usecases.runtime.gateway import Gateway

CHECK_CLOCK_EVERY = 60.0
SMALL = 0.5
"""Seconds by which a clock may be set back without harm."""
SETTLED = 60.0
"""Seconds. Calls recorded this long before a restart are looked at once more."""
SAID_FOR = 600.0
"""Seconds, so that an incident is opened of it, and is over soon."""

steady = partial(time.clock_gettime, getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
"""The time that nobody sets. Where the system can tell, it goes on while the machine sleeps."""


class ClockWatch:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._offset: float | None = None
        self._last = 0.0
        self._back, self._since = 0.0, float("inf")
        """By how much the clock was set back, and to which time, as long as that is not dealt with."""
        self._look_at, self._said_until = float("-inf"), float("-inf")

    async def round(self) -> None:
        now, moment = self._gateway.clock(), steady()
        runtime = self._gateway.runtime
        begins, step = self._offset is None, now - moment - (self._offset or 0.0)
        if not begins and step < -SMALL:
            self._back, self._since = max(self._back, -step), min(self._since, self._last + step)
        elif not begins and step > JUMP:
            runtime.clock_is_trusted = False
            log.warning(
                "the clock went forward: it was set, or this machine stood still", seconds=round(step)
            )
        self._offset, self._last = now - moment, now
        if moment >= self._said_until:
            runtime.clock_set_back = ""
        if not self._back and moment < self._look_at:
            return
        # Another process may have recorded them, or this one before a restart.
        newest = await self._gateway.store.ahead.newest(now + JUMP)
        back = max(self._back, time_of(newest) - now if newest else 0.0)
        if begins or back:
            await self._gateway.store.ahead.take_back(now, min(self._since, now - SETTLED))
        if back > JUMP:
            self._said_until = moment + SAID_FOR
            runtime.clock_set_back = f"{timedelta(seconds=round(back))} or more"
        self._back, self._since, self._look_at = 0.0, float("inf"), moment + CHECK_CLOCK_EVERY
