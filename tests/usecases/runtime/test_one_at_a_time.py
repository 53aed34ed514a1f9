"""Work that takes long waits in a line of bounded length, the lowest rank first."""

import asyncio
import threading
from collections.abc import Callable
from itertools import count

import pytest

from postern.usecases.runtime.one_at_a_time import OneAtATime


class Line:
    """A line whose first place is taken until ``go`` is set."""

    def __init__(self, most_waiting: int) -> None:
        self.line = OneAtATime("test", most_waiting, "Many are here.")
        self.go = threading.Event()
        self.done: list[str] = []
        self.at_work = 0
        self.tasks: list[asyncio.Task[str]] = []

    def _work(self, name: str) -> Callable[[], str]:
        def work() -> str:
            self.at_work += 1
            assert self.at_work == 1
            self.go.wait(60)
            self.done.append(name)
            self.at_work -= 1
            return name

        return work

    async def come(self, name: str, rank: float = 0.0) -> "asyncio.Task[str]":
        task = asyncio.create_task(self.line.run(self._work(name), rank))
        self.tasks.append(task)
        await asyncio.sleep(0)  # it stands in the line, or is at work
        return task

    async def all_come_to_an_end(self) -> list[str]:
        self.go.set()
        await asyncio.wait(self.tasks, timeout=60)
        return self.done


async def test_the_lowest_rank_is_next_and_among_equals_who_came_first() -> None:
    line = Line(10)
    for name, rank in (("first", 5.0), ("c", 2.0), ("a", 1.0), ("b", 1.0)):
        await line.come(name, rank)
    assert len(line.line._waiting) == 3
    assert await line.all_come_to_an_end() == ["first", "a", "b", "c"]
    assert len(line.line._waiting) == 0
    assert await line.line.run(lambda: "later") == "later"


@pytest.mark.parametrize("crowd_is_of", ["one network", "many networks of one company"])
async def test_who_has_many_addresses_waits_behind_a_lone_one_and_is_sent_away_first(
    crowd_is_of: str,
) -> None:
    queue = OneAtATime("test", 20, "busy")
    let_go, done, number = threading.Event(), list[str](), count()
    at_work = asyncio.create_task(queue.run(let_go.wait))
    await asyncio.sleep(0)

    async def come(name: str, network: str, rank: float = 0.0) -> "asyncio.Task[None]":
        near = network if crowd_is_of == "one network" else f"{network}, {next(number)}"
        task = asyncio.create_task(queue.run(lambda: done.append(name), rank, (network, near)))
        await asyncio.sleep(0)
        return task

    few = [await come("few", "of two"), await come("few", "of two")]
    proven = [await come("proven", "of a crowd", -1.0) for _ in range(5)]
    crowd = [await come("crowd", "of a crowd") for _ in range(100)]
    lone = await come("lone", "of one", 9.0)  # who has failed before
    crowd += [await come("crowd", "of a crowd") for _ in range(100)]
    let_go.set()
    await asyncio.gather(at_work, lone, *few, *proven)
    answers = await asyncio.gather(*crowd, return_exceptions=True)
    assert answers.count(None) == 20 - 8 and done[:5] == ["proven"] * 5
    assert done[5:7] == ["few", "few"] and done[-1] == "lone"


async def test_who_is_called_and_goes_away_in_the_same_moment_gives_its_turn_on() -> None:
    line = Line(10)
    turn = line.line._turn(0.0)
    await turn.__aenter__()
    for name in ("a", "b"):
        await line.come(name)
    await turn.__aexit__(None, None, None)  # calls the next one …
    line.tasks[0].cancel()  # … who has not heard it yet
    assert await line.all_come_to_an_end() == ["b"]
    assert await line.line.run(lambda: "later") == "later"


async def test_work_that_fails_ends_its_turn() -> None:
    line = OneAtATime("test", 1, "")

    def fails() -> None:
        raise ValueError("planted")

    with pytest.raises(ValueError, match="planted"):
        await line.run(fails)
    assert await line.run(lambda: 7) == 7
