"""Waiting without fixed sleeps: wait for the condition, and give up after a bound with words that help."""

import asyncio
import os
import random
import socket
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 120.0
"""Seconds. Only a test that fails waits that long, so it says nothing about how fast anything is."""

OFTEN, SELDOM, PART = 0.02, 0.2, 0.05
"""Seconds between two questions. An answer costs the program that is asked, and others that work beside it, so a test that has waited
for long asks after another twentieth of that time: it hears a twentieth later at most, and has asked far less often."""


def wait_until(
    condition: Callable[[], T],
    timeout: float = PATIENCE,
    *,
    what: str | Callable[[], str] = "",
    every: float | None = None,
) -> T:
    """The condition's first true answer. Its last exception, or its last answer, is told when time is up. What takes long is
    asked for less often (`PART`), unless ``every`` says otherwise."""
    began = time.monotonic()
    while True:
        last: object
        try:
            answer = condition()
            if answer:
                return answer
            last = f"its last answer was {answer!r}"
        except Exception as error:
            last = f"it last raised {error!r}"
        waited = time.monotonic() - began
        if waited > timeout:
            awaited = what() if callable(what) else what or condition.__qualname__
            raise AssertionError(f"waited {timeout:g} s for {awaited}; {last}")
        time.sleep(every or min(SELDOM, max(OFTEN, waited * PART)))


async def until(condition: Callable[[], object]) -> None:
    """As soon as the condition is true of this process, whose other tasks go on meanwhile."""
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.001)


_taken: list[socket.socket] = []


def is_listening(port: int) -> bool:
    with socket.socket() as asked:
        return asked.connect_ex(("127.0.0.1", port)) == 0


def free_port() -> int:
    """A port nobody listens on, nor was given by another run of the tests: until its program listens, that one's would answer in its
    place. Below the range that outgoing connections take theirs from, and a range for each worker."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    first = 12_000 + worker % 10 * 2_000
    while True:
        port = first + random.randrange(2_000)
        taken = socket.socket(socket.AF_UNIX)
        try:
            taken.bind(f"\0a port of Postern's tests: {port}")
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", port))
        except OSError:
            taken.close()
            continue
        _taken.append(taken)
        return port
