"""Passwords: hashed with Argon2id, in a thread of their own, those who are likely to be right first."""

import asyncio
import os
import sys
import threading
from bisect import insort
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from itertools import count
from typing import TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from postern.core.problems import FieldError, Refused

T = TypeVar("T")

SHORTEST, LONGEST = 8, 256
MOST_WAITING = 100
NICENESS = 10

_hasher = PasswordHasher(time_cost=2, memory_cost=32 * 1024, parallelism=1)

# Compared with where there is no such user, so that a wrong name takes as long as a wrong password.
NOBODY = "$argon2id$v=19$m=32768,t=2,p=1$FJ0c+NlTyhR5NGgpCboqHA$yGch6U4OAn9n9Rx3oIctb8eo10nT6jD/Mc8Qf2Xf97M"


class Line:
    """One at a time, the lowest ``rank`` first. When too many wait, the highest rank is sent away, who may be
    the one that just came: so a few addresses that fail all the time cannot keep out the others."""

    def __init__(self, most_waiting: int) -> None:
        self._most = most_waiting
        self._taken = False
        self._waiting: list[tuple[float, int, asyncio.Future[None]]] = []
        self._count = count()

    @asynccontextmanager
    async def turn(self, rank: float) -> AsyncIterator[None]:
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
        if len(self._waiting) > self._most:
            self._waiting.pop()[2].set_exception(
                Refused(
                    "temporarily_unavailable", "Too many are signing in at once; try again in a few seconds."
                )
            )
        try:
            await called
        except asyncio.CancelledError:
            if place in self._waiting:
                self._waiting.remove(place)
            elif called.done() and not called.cancelled() and called.exception() is None:
                self._taken = False  # called just before: the turn is the next one's
                self._call_next()
            raise

    def __len__(self) -> int:
        return len(self._waiting)

    def _call_next(self) -> None:
        while self._waiting:
            called = self._waiting.pop(0)[2]
            if not called.done():
                self._taken = True  # at once: somebody who comes before the called one wakes must wait
                called.set_result(None)
                return


def _behind_callers() -> None:
    if sys.platform == "linux":  # where a thread has a niceness of its own
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)


# One at a time: each takes 32 MiB, and time on a core that callers need more.
_thread = ThreadPoolExecutor(1, thread_name_prefix="passwords", initializer=_behind_callers)
_line = Line(MOST_WAITING)


def check_password(password: str, field: str = "password") -> None:
    if not SHORTEST <= len(password) <= LONGEST:
        raise Refused(
            "invalid_request", errors=[FieldError(field, f"has {SHORTEST} to {LONGEST} characters")]
        )


async def hashed(password: str) -> str:
    """The password as it is stored. In a thread: it takes as long as it is meant to."""
    return await _in_turn(_hasher.hash, password, -1.0)


async def matches(password_hash: str, password: str, rank: float = -1.0) -> bool:
    """Whether this is the password. ``rank``: whose turn comes first where several wait; below zero are those
    who have proven something already."""

    def verify(secret: bytes) -> bool:
        try:
            return _hasher.verify(password_hash, secret)
        except (VerificationError, InvalidHashError):
            return False

    return await _in_turn(verify, password, rank)


def waiting() -> int:
    return len(_line)


def outdated(password_hash: str) -> bool:
    return _hasher.check_needs_rehash(password_hash)


async def _in_turn(work: Callable[[bytes], T], password: str, rank: float) -> T:
    async with _line.turn(rank):
        secret = password.encode("utf-8", "surrogatepass")
        return await asyncio.get_running_loop().run_in_executor(_thread, work, secret)
