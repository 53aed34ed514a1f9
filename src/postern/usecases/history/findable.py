"""Makes calls findable by their values, some seconds after they were answered."""

import time

from postern.core.access.accounts import Actor
from postern.core.history.findable import keys_of
from postern.identity import time_of
from postern.stores.history.findable import CHORE
from postern.usecases.answers import Time
from postern.usecases.history.rows import LARGEST_READ, fields_of, sender_event_of
from postern.usecases.runtime.gateway import Gateway, require
from postern.usecases.runtime.loop import Loop

SETTLED = 5.0
"""Seconds in which another process may still commit a call with an earlier id."""
CHECK_CALLS_EVERY = 2.0
USUAL = 10.0
"""Seconds after which a call can be found, if the gateway has time for it."""
STEP = 200
SHARE = 0.04
"""The part of the time that this takes at most while calls wait to be stored."""
SHARE_OF_QUIET = 0.3


async def step(gateway: Gateway) -> int:
    """Makes the next calls findable. Returns how many."""
    store, now = gateway.store.findable, gateway.clock()
    after = await gateway.store.chores.reached(CHORE)
    _, left_at = await gateway.store.chores.last_done(CHORE) or (now, "")
    calls = await store.following(after, None if left_at else now - SETTLED, STEP, LARGEST_READ)
    if (
        not calls and left_at
    ):  # those with times that are yet to come are done; a few others are taken once more
        return int(await store.keep({}, after, now, left_at))
    if not calls:
        return 0
    keys = {}
    for invocation, fields in calls:
        values = (fields or fields_of(gateway, invocation)).values()
        keys[invocation.id] = keys_of(invocation.address, [*values, sender_event_of(gateway, invocation)])
    return len(calls) if await store.keep(keys, after, gateway.clock()) else 0


async def behind(gateway: Gateway, actor: Actor) -> Time | None:
    """Since when calls cannot be found by a value yet, if that is longer than usual."""
    require(actor, "read")
    first = await gateway.store.findable.first_behind()
    if first is None or gateway.clock() - time_of(first) < USUAL:
        return None
    return Time(time_of(first))


class FindableLoop:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._loop = Loop("findable", self._work, CHECK_CALLS_EVERY)
        self.run, self.stop = self._loop.run, self._loop.stop

    async def _work(self) -> bool:
        began = time.perf_counter()
        done = await step(self._gateway)
        share = SHARE if self._gateway.store.writer.waiting else SHARE_OF_QUIET
        await self._loop.rest((time.perf_counter() - began) * (1 / share - 1))
        return done == STEP
