"""What came to each webhook lately, for all of them at once."""

import time

from postern.core.webhooks.listing import Lately
from postern.usecases.history.volumes import last_hours
from postern.usecases.runtime.gateway import Gateway

EXACT_UP_TO = 500
"""So many webhooks are counted for each page. Of more, a page shows what was counted some seconds ago."""
KEPT_FOR = 5.0
SHARE = 20
"""Counting takes at most one of so many parts of the time, however long it takes."""
TOO_OLD = 60.0


async def activities(gateway: Gateway) -> Lately:
    """What came to each webhook."""
    counted = gateway.runtime.counted
    age = time.monotonic() - counted.at
    if len(gateway.runtime.directory.listed()) <= EXACT_UP_TO or age > max(TOO_OLD, counted.took * SHARE):
        return await _count(gateway)
    if age > max(KEPT_FOR, counted.took * SHARE) and (counted.task is None or counted.task.done()):
        # Whoever asks now need not wait for it.
        counted.task = gateway.runtime.background(_count(gateway))
    return counted.lately


async def _count(gateway: Gateway) -> Lately:
    began = time.monotonic()
    found = await gateway.store.activities.all(*last_hours(gateway.clock()))
    counted = gateway.runtime.counted
    counted.lately, counted.at, counted.took = found, time.monotonic(), time.monotonic() - began
    return found
