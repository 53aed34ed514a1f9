"""More connections than there may be: which of them are closed so that a caller still finds a place.

Each connection costs a file descriptor, and the process needs some for everything else: databases, the engine,
requests of its own.
"""

import resource
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from enum import IntEnum
from typing import NamedTuple

ENOUGH_DESCRIPTORS = 65_536
MOST_CONNECTIONS = 10_000
JUST_NOW = 1.0
"""Seconds: for so long a connection may be quiet and still be one that is about to send something."""
CLOSED_AT_ONCE = 32
"""A look at all connections makes place for a thirty-second of them, so that it is not needed for each caller."""


class Progress(IntEnum):
    """The stages of a connection's current request. The further it has come, the later it is given up."""

    IDLE = 0
    UNREAD = 1
    """Its caller does not take the answer."""
    HEAD = 2
    BODY = 3
    READING = 4
    """Its caller takes the answer slowly."""
    ANSWERING = 5


class Standing(NamedTuple):
    progress: Progress
    since: float
    address: str


def raise_descriptor_limit() -> None:
    """The usual soft limit of 1,024 is there for programs that use ``select``."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    enough = ENOUGH_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, ENOUGH_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < enough:
        with suppress(OSError, ValueError):  # the system may have a limit of its own below
            resource.setrlimit(resource.RLIMIT_NOFILE, (enough, hard))


def most_connections() -> int:
    """A quarter of the descriptors is kept for everything else."""
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return MOST_CONNECTIONS if soft == resource.RLIM_INFINITY else min(MOST_CONNECTIONS, soft * 3 // 4)


def give_up(standings: Iterable[Standing], number: int, now: float) -> list[int]:
    """The places, in the order given, of those to be closed: first what an address holds beyond its share, which is
    ``number``; then who has been idle, who does not read, whose request does not come, who reads slowly; among equals
    the address that holds the most, and the longest there. Never one that is being answered."""
    known = list(enumerate(standings))
    held = Counter(standing.address for _, standing in known)

    def order(pair: tuple[int, Standing]) -> tuple[bool, bool, Progress | int, int, float]:
        progress, since, address = pair[1]
        fresh = now - since < JUST_NOW
        # A newcomer, that has not sent anything yet, must not go before those who let others wait.
        return fresh, held[address] <= number, 0 if fresh else progress, -held[address], since

    waiting = [pair for pair in known if pair[1].progress is not Progress.ANSWERING]
    return [place for place, _ in sorted(waiting, key=order)[:number]]
