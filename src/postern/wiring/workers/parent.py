"""Several gateway processes on one machine: a parent that serves nothing itself, keeps them running, and ends
them in order.

Each has a listening socket of its own on the same address, and the kernel deals connections out among them.
The parent keeps every socket open while its worker lives. The socket of one that has died would only collect
callers, who would wait for a new process while the others serve: it is closed, and the new process gets
another.
"""

import asyncio
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from postern.observe.logs import log
from postern.surfaces.http.server import DRAIN_SECONDS, pass_over_others
from postern.wiring.workers.worker import WorkerSlot

LONGEST_PAUSE = 10.0
START_SECONDS = 180.0
END_SECONDS = DRAIN_SECONDS + 20.0


class Worker:
    def __init__(self, number: int, listener: socket.socket) -> None:
        self.number = number
        self.listener = listener
        self.process: asyncio.subprocess.Process | None = None
        """None while a new process is starting."""
        self.serving = False
        self.starting = asyncio.Lock()
        """Held while a process is started for it: it may die just while it is replaced, and would get two
        successors."""


class Workers:
    """SIGTERM and SIGINT end all of them; SIGHUP replaces one after the other, each only when its successor
    serves."""

    def __init__(
        self, count: int, listen: Callable[[], socket.socket], when_up: Callable[[], None], data_dir: Path
    ) -> None:
        """``listen`` opens one more socket on the address that all share."""
        self._data_dir = data_dir
        self._workers = [Worker(number, listen()) for number in range(count)]
        self._listen = listen
        self._when_up = when_up
        self._stopping = asyncio.Event()
        self._status = 0
        self._lifelines: dict[int, socket.socket] = {}
        """Open for as long as this process lives: their end is what tells the workers that it has gone."""
        self._replacing: asyncio.Task[None] | None = None

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        for signum in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(signum, self._end)
        loop.add_signal_handler(signal.SIGHUP, self._replace_all)
        pass_over_others(loop)
        with _folder_for_sockets(self._data_dir) as self._socket_dir:
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
        """A new process for the worker, once it serves; None where it ended before that."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        with theirs:
            slot = WorkerSlot(
                worker.number, len(self._workers), worker.listener.fileno(), theirs.fileno(), self._socket_dir
            )
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "postern", "serve", "--worker", msgspec.json.encode(slot),
                pass_fds=(slot.listener, slot.lifeline),
                process_group=0,  # Ctrl-C is for the parent alone, which ends the workers in order
            )  # fmt: skip
        if worker.process is None:
            worker.process = process
        if self._stopping.is_set():
            _signal(process, signal.SIGTERM)  # the end was asked for while there was no process to tell
        sign, trouble = b"", "a worker ended before it served"
        try:
            sign = await asyncio.wait_for(asyncio.get_running_loop().sock_recv(ours, 1), START_SECONDS)
        except TimeoutError:
            trouble = "a worker took too long to serve"
        if not sign:
            ours.close()
            _signal(process, signal.SIGKILL)
            status = await process.wait()
            if not self._stopping.is_set():
                log.error(trouble, worker=worker.number, status=status)
            return None
        self._lifelines[process.pid] = ours
        worker.serving = True
        return process

    async def _keep(self, worker: Worker) -> None:
        pause = 0.1
        while not self._stopping.is_set():
            process = worker.process
            if process is not None:
                status = await process.wait()
                if process.pid in self._lifelines:
                    self._lifelines.pop(process.pid).close()
                if worker.process is not process or self._stopping.is_set():
                    continue  # it was replaced, or everything ends
                log.warning("a worker ended and is started again", worker=worker.number, status=status)
                worker.process, worker.serving = None, False
            async with worker.starting:
                if worker.process is not None or self._stopping.is_set():
                    continue  # its replacement was on its way already
                try:
                    self._turn_away_from(worker)
                    process = await self._start(worker)
                except OSError as error:  # no socket or no process to be had
                    process = None
                    log.error("a worker could not be started", worker=worker.number, error=str(error))
            if process is None:
                await asyncio.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE)
            else:
                pause = 0.1

    def _turn_away_from(self, worker: Worker) -> None:
        """New callers are dealt to the others from now on. The new socket gets none until its process serves;
        where nobody else does, the old one stays, and callers wait."""
        if any(other.serving for other in self._workers):
            worker.listener.close()
            worker.listener = self._listen()

    def _replace_all(self) -> None:
        if self._replacing is None or self._replacing.done():
            self._replacing = asyncio.create_task(self._replace())

    async def _replace(self) -> None:
        for worker in self._workers:
            async with worker.starting:
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
                # Asked twice, it asks its workers twice, and they do not wait for slow callers.
                _signal(worker.process, signal.SIGTERM)

    async def _ended(self) -> None:
        if self._replacing is not None:
            self._replacing.cancel()
        statuses = await asyncio.gather(
            *(_wait(worker.process) for worker in self._workers if worker.process is not None)
        )
        if not set(statuses) <= {0, -signal.SIGTERM}:  # the latter: asked to end before it had quite begun
            self._status = self._status or 1


@contextmanager
def _folder_for_sockets(data_dir: Path) -> Iterator[str]:
    """Makes the folder of the workers' sockets. The data folder's name may be too long for a socket's. A folder that
    is noted there was left by a parent that was killed, for whoever serves holds the data folder."""
    note = data_dir / "workers.sockets"
    with suppress(OSError):
        left = Path(note.read_text())
        for path in left.glob("worker-*.sock"):
            path.unlink()
        left.rmdir()
    with tempfile.TemporaryDirectory(prefix="postern-") as folder:
        note.write_text(folder)
        yield folder
    note.unlink(missing_ok=True)


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
