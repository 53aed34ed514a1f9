"""Work that takes long on purpose or by its nature: one at a time, behind the calls of senders."""

import asyncio
import os
import sys
import threading
from bisect import bisect_left, insort
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from itertools import count
from random import randrange
from typing import TypeVar

from postern.core.problems import Refused

T = TypeVar("T")

NICENESS = 10


class OneAtATime:
    """A thread of its own, which the kernel runs behind all others, and a queue in front of it: the lowest
    ``rank`` comes first. When too many wait, one with the highest rank is refused, even if it waited already. So
    a few who ask all the time cannot keep out the others."""

    def __init__(self, name: str, most_waiting: int, busy: str) -> None:
        self.most_waiting = most_waiting
        self._busy = busy
        self._taken = False
        self._waiting: list[tuple[float, int, asyncio.Future[None]]] = []
        self._count = count()
        self._thread = ThreadPoolExecutor(1, name, _behind_callers)

    async def run(self, work: Callable[[], T], rank: float = 0.0) -> T:
        async with self._turn(rank):
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @asynccontextmanager
    async def _turn(self, rank: float) -> AsyncIterator[None]:
        if self._taken:
            await self._wait(rank)
        self._taken = True
        try:
            yield
        finally:
            self._taken = False
            self._call_next()

    async def _wait(self, rank: float) -> None:
        called: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        place = (rank, next(self._count), called)
        insort(self._waiting, place)
        if len(self._waiting) > self.most_waiting:
            # Among equals any of them: if it were the newest, a crowd that came first would keep out everybody.
            first = bisect_left(self._waiting, (self._waiting[-1][0],))
            sent_away = self._waiting.pop(randrange(first, len(self._waiting)))
            sent_away[2].set_exception(Refused("temporarily_unavailable", self._busy))
        try:
            await called
        except asyncio.CancelledError:
            if place in self._waiting:
                self._waiting.remove(place)
            elif called.done() and not called.cancelled() and called.exception() is None:
                self._taken = False  # called just before: the turn is the next one's
                self._call_next()
            raise

    def _call_next(self) -> None:
        while self._waiting:
            called = self._waiting.pop(0)[2]
            if not called.done():
                self._taken = True  # at once: somebody who comes before the called one wakes must wait
                called.set_result(None)
                return


def _behind_callers() -> None:
    if sys.platform == "linux":  # where a thread has a niceness of its own
        thread = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, thread, os.getpriority(os.PRIO_PROCESS, thread) + NICENESS)
