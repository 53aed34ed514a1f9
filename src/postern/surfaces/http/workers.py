"""Several gateway processes on one machine: a parent that serves nothing itself, keeps them running, and ends
them in order.

Each has a listening socket of its own on the same address, and the kernel deals connections out among them.
The parent keeps every socket open, so that while a process is replaced its callers wait in line instead of
being turned away.
"""

import asyncio
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import structlog

from postern.surfaces.http.server import DRAIN_SECONDS

LONGEST_PAUSE = 10.0
START_SECONDS = 180.0
END_SECONDS = DRAIN_SECONDS + 20.0

log = structlog.get_logger("postern.workers")


@dataclass(frozen=True, slots=True)
class Place:
    """What a worker is told by its parent, as one word on its command line."""

    number: int
    of: int
    listener: int
    lifeline: int
    """Written to when it serves; at its end the parent is gone."""
    room: str
    """The folder where workers meet: `siblings.py`."""

    def __str__(self) -> str:
        return f"{self.number}:{self.of}:{self.listener}:{self.lifeline}:{self.room}"

    @classmethod
    def read(cls, word: str) -> "Place":
        number, of, listener, lifeline, room = word.split(":", 4)
        return cls(int(number), int(of), int(listener), int(lifeline), room)


def up(place: Place) -> None:
    """Called in the worker once it serves. From then on it ends when its parent does, however that ended."""
    lifeline = socket.socket(fileno=os.dup(place.lifeline))
    lifeline.setblocking(False)
    lifeline.send(b"u")
    loop = asyncio.get_running_loop()

    def gone() -> None:
        loop.remove_reader(lifeline)
        os.kill(os.getpid(), signal.SIGTERM)

    loop.add_reader(lifeline, gone)


class Worker:
    def __init__(self, number: int, listener: socket.socket) -> None:
        self.number = number
        self.listener = listener
        self.process: asyncio.subprocess.Process | None = None


class Workers:
    """SIGTERM and SIGINT end all of them; SIGHUP replaces one after the other, each only when its successor
    serves."""

    def __init__(self, listeners: list[socket.socket], when_up: Callable[[], None]) -> None:
        self._workers = [Worker(number, listener) for number, listener in enumerate(listeners)]
        self._when_up = when_up
        self._stopping = asyncio.Event()
        self._status = 0
        self._lifelines: dict[int, socket.socket] = {}
        """Open for as long as this process lives: their end is what tells the workers that it has gone."""
        self._replacing: asyncio.Task[None] | None = None

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        for one in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(one, self._end)
        loop.add_signal_handler(signal.SIGHUP, self._replace_all)
        with tempfile.TemporaryDirectory(prefix="postern-") as room:
            self._room = room
            began = await asyncio.gather(
                *(self._start(worker) for worker in self._workers), return_exceptions=True
            )
            keeping = [asyncio.create_task(self._keep(worker)) for worker in self._workers]
            if not self._stopping.is_set():
                if all(process is not None and not isinstance(process, BaseException) for process in began):
                    self._when_up()
                else:
                    self._status = 1
                    self._end()
            await self._stopping.wait()
            for worker in self._workers:
                worker.listener.close()
            await self._ended()
            for task in keeping:
                task.cancel()
        return self._status

    async def _start(self, worker: Worker) -> asyncio.subprocess.Process | None:
        """A new process in the worker's place, once it serves; None where it ended before that."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        with theirs:
            place = Place(
                worker.number, len(self._workers), worker.listener.fileno(), theirs.fileno(), self._room
            )
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "postern", "serve", "--worker", str(place),
                pass_fds=(place.listener, place.lifeline),
                process_group=0,  # Ctrl-C is for the parent alone, which ends the workers in order
            )  # fmt: skip
        if worker.process is None:
            worker.process = process
        said, trouble = b"", "a worker ended before it served"
        try:
            said = await asyncio.wait_for(asyncio.get_running_loop().sock_recv(ours, 1), START_SECONDS)
        except TimeoutError:
            trouble = "a worker took too long to serve"
        if not said:
            ours.close()
            _signal(process, signal.SIGKILL)
            status = await process.wait()
            if not self._stopping.is_set():
                log.error(trouble, worker=worker.number, status=status)
            return None
        self._lifelines[process.pid] = ours
        return process

    async def _keep(self, worker: Worker) -> None:
        pause = 0.1
        while not self._stopping.is_set():
            process = worker.process
            assert process is not None
            status = await process.wait()
            if process.pid in self._lifelines:
                self._lifelines.pop(process.pid).close()
            if worker.process is not process or self._stopping.is_set():
                continue  # it was replaced, or everything ends
            log.warning("a worker ended and is started again", worker=worker.number, status=status)
            worker.process = None
            if await self._start(worker) is None:
                await asyncio.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE)
            else:
                pause = 0.1

    def _replace_all(self) -> None:
        if self._replacing is None or self._replacing.done():
            self._replacing = asyncio.create_task(self._replace())

    async def _replace(self) -> None:
        for worker in self._workers:
            old = worker.process
            new = await self._start(worker)
            if new is None:
                log.error("the new worker did not come up; the old ones go on", worker=worker.number)
                return
            worker.process = new
            if old is not None:
                _signal(old, signal.SIGTERM)
                await _wait(old)
        log.info("every worker has been replaced", workers=len(self._workers))

    def _end(self) -> None:
        self._stopping.set()
        for worker in self._workers:
            if worker.process is not None:
                _signal(
                    worker.process, signal.SIGTERM
                )  # asked twice, it is told twice: do not wait for slow callers

    async def _ended(self) -> None:
        if self._replacing is not None:
            self._replacing.cancel()
        statuses = await asyncio.gather(
            *(_wait(worker.process) for worker in self._workers if worker.process is not None)
        )
        if not set(statuses) <= {0, -signal.SIGTERM}:  # the latter: asked to end before it had quite begun
            self._status = self._status or 1


async def _wait(process: asyncio.subprocess.Process) -> int:
    try:
        return await asyncio.wait_for(process.wait(), END_SECONDS)
    except TimeoutError:
        _signal(process, signal.SIGKILL)
        return await process.wait()


def _signal(process: asyncio.subprocess.Process, number: int) -> None:
    # Not the process's own method: that looks whether it has ended, and would take its status away from
    # whoever waits for it.
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.kill(process.pid, number)
