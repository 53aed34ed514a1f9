"""Workers that end, or are asked to, at an unlucky moment."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from postern.wiring.workers.parent import Workers
from postern.wiring.workers.worker import merged
from support.waiting import PATIENCE

Start = Callable[..., Awaitable[asyncio.subprocess.Process]]


class Started:
    """The processes that stand in for workers, in the order in which they were started."""

    def __init__(self, start: Start) -> None:
        self.processes: list[asyncio.subprocess.Process] = []
        self._start = start

    async def one(self, *command: str, **given: Any) -> asyncio.subprocess.Process:
        self.processes.append(await self._start(*command, **given))
        return self.processes[-1]


@pytest.fixture
def started() -> Iterator[Started]:
    started = Started(asyncio.create_subprocess_exec)
    yield started
    for process in started.processes:
        if process.returncode is None:
            os.kill(process.pid, signal.SIGKILL)


@pytest.fixture(autouse=True)
async def own_signals() -> AsyncIterator[None]:
    yield
    for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        asyncio.get_running_loop().remove_signal_handler(one)


async def test_a_worker_that_dies_while_it_is_replaced_has_one_successor(
    monkeypatch: pytest.MonkeyPatch, started: Started, tmp_path: Path
) -> None:
    async def serving(*_: str, **given: Any) -> asyncio.subprocess.Process:
        if len(started.processes) == 1:
            first = started.processes[0]
            os.kill(first.pid, signal.SIGKILL)
            await first.wait()
            for _turn in range(20):  # whoever else waited for its end goes on
                await asyncio.sleep(0)
        lifeline = given["pass_fds"][1]
        serve = f"import os, time; os.write({lifeline}, b'!'); time.sleep(60)"
        return await started.one(sys.executable, "-IS", "-c", serve, **given)

    monkeypatch.setattr(asyncio, "create_subprocess_exec", serving)
    workers = Workers(1, socket.socket, lambda: os.kill(os.getpid(), signal.SIGHUP), tmp_path)
    running = asyncio.create_task(workers.run())
    async with asyncio.timeout(PATIENCE):
        while workers._replacing is None:
            await asyncio.sleep(0.01)
        await workers._replacing
        os.kill(os.getpid(), signal.SIGTERM)
        assert await running == 0
    assert [process.returncode for process in started.processes] == [-signal.SIGKILL, -signal.SIGTERM]


async def test_each_metric_of_several_workers_is_described_once() -> None:
    text = '# HELP calls_total Calls.\n# TYPE calls_total counter\ncalls_total{outcome="accepted"} 1\n# HELP up Up.\n# TYPE up gauge\nup 1\n'
    assert merged({1: text, 0: text}).splitlines() == [
        *("# HELP calls_total Calls.", "# TYPE calls_total counter"),
        *(f'calls_total{{outcome="accepted",worker="{number}"}} 1.0' for number in (0, 1)),
        *("# HELP up Up.", "# TYPE up gauge"),
        *(f'up{{worker="{number}"}} 1.0' for number in (0, 1)),
    ]
