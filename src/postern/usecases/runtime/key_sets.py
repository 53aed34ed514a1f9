"""The senders' key sets that were fetched: what calls are checked with, and when it is fetched again.

Nobody who calls decides what is fetched or how often: the addresses are those of the settings, each is asked once in a while,
and only so many calls wait for an answer at a time. Where a set is at hand no accepted call waits for it: it is
renewed beside.
"""

import asyncio
import time
from collections.abc import Callable

from postern.core.problems import FetchTrouble
from postern.observe.logs import Log
from postern.usecases.ports import Fetch

WITHIN = 5.0
LARGEST = 256 * 1024
RENEWED_AFTER = 3600.0
KEPT_FOR = 24 * 3600.0
"""Seconds for which a set is good when its address does not answer any more."""
ASKED_EVERY = 60.0
"""Seconds between two requests to an address, whatever callers send and whatever it answers."""
MOST_WAITING = 100
MOST_SETS = 500

log = Log()


class KeySets:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.fetch: Fetch | None = None
        self.at_hand: dict[str, bytes] = {}
        """By their addresses. What a check is given."""
        self._clock = clock
        self._fetched_at: dict[str, float] = {}
        self._asked_at: dict[str, float] = {}
        self._under_way: dict[str, asyncio.Task[None]] = {}
        self._waiting = 0

    def look(self, address: str) -> dict[str, bytes]:
        """What is at hand, before a call is judged with it: what is too old goes, and what is getting old is asked for."""
        age = self._clock() - self._fetched_at.get(address, self._clock())
        if age > KEPT_FOR:
            self.at_hand.pop(address, None)
            self._fetched_at.pop(address, None)
        elif age > RENEWED_AFTER:
            self._ask(address)
        return self.at_hand

    async def wait(self, address: str) -> bool:
        """Whether the set at this address is another one than before; never waits longer than ``WITHIN``."""
        before = self._fetched_at.get(address)
        task = self._ask(address)
        if task is None or self._waiting >= MOST_WAITING:
            return False
        self._waiting += 1
        try:
            await asyncio.wait([task])
        finally:
            self._waiting -= 1
        return self._fetched_at.get(address) != before

    def may_wait(self, address: str) -> bool:
        return self._waiting < MOST_WAITING and (address in self._under_way or self._may_ask(address))

    def _may_ask(self, address: str) -> bool:
        asked = self._asked_at.get(address)
        return self.fetch is not None and (asked is None or self._clock() - asked >= ASKED_EVERY)

    def _ask(self, address: str) -> asyncio.Task[None] | None:
        task = self._under_way.get(address)
        if task is None and self._may_ask(address):
            if len(self._asked_at) >= MOST_SETS:  # webhooks that are gone
                oldest = min(self._asked_at, key=self._asked_at.__getitem__)
                for known in (self._asked_at, self._fetched_at, self.at_hand):
                    known.pop(oldest, None)
            self._asked_at[address] = self._clock()
            task = self._under_way[address] = asyncio.get_running_loop().create_task(self._fetch(address))
        return task

    async def _fetch(self, address: str) -> None:
        assert self.fetch is not None
        try:
            answer = await self.fetch(address, headers={}, timeout=WITHIN, max_bytes=LARGEST)
            if answer.status == 200:
                self.at_hand[address], self._fetched_at[address] = answer.body, self._clock()
            else:
                log.warning("a sender's keys could not be fetched", address=address, status=answer.status)
        except FetchTrouble as trouble:
            log.warning("a sender's keys could not be fetched", address=address, reason=trouble.detail)
        finally:
            self._under_way.pop(address, None)
