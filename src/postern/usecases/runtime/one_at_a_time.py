"""Does work that takes long one at a time, behind the calls of senders."""

import asyncio
import os
import sys
import threading
from bisect import insort
from collections import Counter
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from itertools import count
from random import choice
from typing import NamedTuple, TypeVar

from postern.core.problems import Refused

T = TypeVar("T")

NICENESS = 10


class QueuePlace(NamedTuple):
    """The lowest place is next."""

    rank: float
    before: list[int]
    """How many of each of its networks waited when this one came."""
    number: int
    called: asyncio.Future[None]
    networks: tuple[str, ...]
    """The widest first."""


class OneAtATime:
    """A thread, which the kernel runs behind all others, with a queue: the lowest ``rank`` comes first, and among equals the
    one with fewest of its network before it. If too many wait, the network with most of them loses the one of the highest
    rank. So neither a few who ask all the time nor one with many addresses can keep out others. One of a rank below zero is
    sent away last."""

    def __init__(self, name: str, most_waiting: int, busy: str) -> None:
        self.most_waiting = most_waiting
        self._busy = busy
        self._taken = False
        self._waiting: list[QueuePlace] = []
        self._count = count()
        self._thread = ThreadPoolExecutor(1, name, _behind_callers)

    async def run(self, work: Callable[[], T], rank: float = 0.0, networks: tuple[str, ...] = ()) -> T:
        async with self._turn(rank, networks):
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    @asynccontextmanager
    async def _turn(self, rank: float, networks: tuple[str, ...] = ()) -> AsyncIterator[None]:
        if self._taken:
            await self._wait(rank, networks)
        self._taken = True
        try:
            yield
        finally:
            self._taken = False
            self._call_next()

    async def _wait(self, rank: float, networks: tuple[str, ...]) -> None:
        called: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        sizes = _sizes(self._waiting)
        before = [sizes[network] for network in networks]
        place = QueuePlace(rank, before, next(self._count), called, networks)
        insort(self._waiting, place)
        if len(self._waiting) > self.most_waiting:
            self._send_one_away()
        try:
            await called
        except asyncio.CancelledError:
            if place in self._waiting:
                self._waiting.remove(place)
            elif called.done() and not called.cancelled() and called.exception() is None:
                self._taken = False  # called just before: the turn is the next one's
                self._call_next()
            raise

    def _send_one_away(self) -> None:
        among = [place for place in self._waiting if place.rank >= 0] or self._waiting
        sizes = _sizes(among)
        crowding = [([sizes[network] for network in place.networks], place.rank) for place in among]
        # Any of the equals: if it were the newest, a crowd that came first would keep out everybody.
        last = max(crowding)
        sent_away = choice([place for place, crowds in zip(among, crowding, strict=True) if crowds == last])
        self._waiting.remove(sent_away)
        sent_away.called.set_exception(Refused("temporarily_unavailable", self._busy))

    def _call_next(self) -> None:
        while self._waiting:
            called = self._waiting.pop(0).called
            if not called.done():
                self._taken = True  # now: somebody who comes before the called one wakes must wait
                called.set_result(None)
                return


def _sizes(waiting: list[QueuePlace]) -> Counter[str]:
    return Counter(network for place in waiting for network in place.networks)


def _behind_callers() -> None:
    if sys.platform == "linux":  # here a thread has a niceness of its own
        thread = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, thread, os.getpriority(os.PRIO_PROCESS, thread) + NICENESS)
