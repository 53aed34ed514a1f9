"""Keeps one engine process running: starts it, starts it again when it dies or the workflow files change,
stops it."""

import asyncio
import errno
import os
import signal
import socket
import subprocess
import sys
import time
from asyncio.subprocess import Process
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec

from postern.core.deliveries.delivery import EngineUnavailable, Workflow
from postern.engines.embedded import frames
from postern.engines.embedded.link import Link, OnEnd, TakeAnswer, nobody_waits
from postern.observe.logs import log
from postern.observe.watching import Watch
from postern.workflows.load import workflow_files

CHECK_FILES_EVERY = 0.5
GRACE = 10.0
STEADY_AFTER = 30.0
LONGEST_PAUSE = 30.0
LONGEST_PAUSE_ONCE_READY = 1.0
"""It came up, so a run has ended it; and that run is put aside when it does so again."""
STARTS_WITHIN = 60.0
SUSPICIOUS_AFTER = 3.0
STARTS_TRIED = 3

Stamps = dict[Path, tuple[int, int, int] | None]


class Supervisor:
    """``link`` is there while the engine can be asked; otherwise ``trouble`` says why not."""

    def __init__(self, setup: frames.SetupFrame, environment: dict[str, str], watch: Watch) -> None:
        self._watch = watch
        self.take_answer: TakeAnswer = nobody_waits
        self.on_end: OnEnd = lambda _, __: None
        self.on_ready: Callable[[], None] = lambda: None
        self._setup = setup
        self._environment = environment
        # The process ends itself first: it can say where it hangs, which we cannot.
        self._patience = setup.hangs_after + 2.0
        self._path = Path(setup.workflows)
        self._seen: Stamps = {}
        self._changed: list[str] = []
        """The names of the files that changed."""
        self._up = asyncio.Event()
        self._link: Link | None = None
        self._process: Process | None = None
        self._error = ""
        self._file_trouble = ""
        self._last_good: dict[str, bytes] = {}
        self.broken: list[str] = []
        """Errors of workflow files, while the workflows of others run."""
        self.missing = ""
        """Why some workflows are missing, or an empty text."""
        self._never_ready = True
        self._asked_to_stop = False
        """The process that is running was."""
        self.failed_starts = 0
        """Processes in a row that ended before they were ready."""
        self.trouble = "the engine process is starting"
        self.workflows: list[Workflow] | None = None
        """None until a process has said which workflows there are."""

    @property
    def link(self) -> Link:
        """The way to the engine, or ``EngineUnavailable``."""
        if not self._up.is_set() or self._link is None or self._link.broken:
            raise EngineUnavailable(self.trouble, 1.0)
        return self._link

    @property
    def process_id(self) -> int | None:
        return self._process.pid if self._process and self._process.returncode is None else None

    def defect(self) -> str:
        """Returns what is wrong now, or an empty text."""
        try:
            link = self.link
        except EngineUnavailable as error:
            return error.detail
        silent = time.monotonic() - link.last_heard
        if silent > SUSPICIOUS_AFTER:
            return f"the engine process has been silent for {silent:.0f} seconds: a workflow may be holding its interpreter"
        return self._file_trouble

    @property
    def cannot_start(self) -> bool:
        """Whether the engine will not start by itself: several starts failed, or its file cannot be used."""
        return not self._up.is_set() and (self.failed_starts >= STARTS_TRIED or bool(self._file_trouble))

    async def run(self) -> None:
        deaths = 0
        while True:
            self._seen = await self._first_look()
            self._error = self._file_trouble = ""
            self._never_ready = True
            began = time.monotonic()
            try:
                why = await self._run_process()
            except OSError as error:  # no process to be had: out of memory or of descriptors
                why, self.trouble = "died", f"the engine process could not be started: {error}"
            finally:
                await self._end(GRACE)
            if why == "changed":
                deaths = 0
                continue
            if self._error:
                self.trouble = f"workflows file has an error: {self._error}"
                self.failed_starts = 0
                await self._wait_for_change()
                continue
            self.failed_starts += 1
            deaths = 1 if time.monotonic() - began > STEADY_AFTER else deaths + 1
            pause = min(
                LONGEST_PAUSE if self._never_ready else LONGEST_PAUSE_ONCE_READY, 0.1 * 2 ** (deaths - 1)
            )
            self._watch.died(self.trouble, pause)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wait_for_change(), pause)

    async def _run_process(self) -> Literal["changed", "died"]:
        ours, theirs = socket.socketpair()
        with theirs:
            self._setup.socket = theirs.fileno()
            try:
                self._process = await asyncio.create_subprocess_exec(
                    # -P: what lies in the directory the gateway was started from must not stand in for a library.
                    *(sys.executable, "-P", "-m", "postern.engines.embedded.process"),
                    msgspec.json.encode(self._setup),
                    pass_fds=(theirs.fileno(),),
                    env={**self._environment, **workflows_environment(os.environ)},
                    stdin=subprocess.DEVNULL,
                    stdout=2,  # what a workflow prints belongs with the log lines
                    start_new_session=True,
                )
            except BaseException:
                ours.close()
                raise
        self._setup.after_crash = self._asked_to_stop = False
        self._link = Link(self.take_answer, self.on_end, self._ready, self._troubled, self._watch.run_over)
        await self._link.connect(ours)
        self._link.send(frames.Begin(self._last_good))
        listening = self._link.over
        changing = asyncio.create_task(self._wait_for_change())
        hanging = asyncio.create_task(self._wait_until_it_hangs(self._link))
        try:
            await asyncio.wait({listening, changing, hanging}, return_when=asyncio.FIRST_COMPLETED)
            self._up.clear()
            if changing.done():
                self.trouble = "the engine process is starting again: the workflows changed"
                self._watch.changed(self._changed)
                await self._end(GRACE)
                return "changed"
            if hanging.done():
                self.trouble = f"the engine process was silent for {self._patience:g} seconds and was ended"
                self._process.kill()
                await self._process.wait()
                self._setup.after_crash = True
                return "died"
            await self._end(0)
            self._setup.after_crash = self._process.returncode not in (-signal.SIGKILL, frames.FILE_LOST)
            self.trouble = self._file_trouble or (
                "the engine process hung, held by a workflow, and was ended"
                if time.monotonic() - self._link.last_heard > self._setup.hangs_after / 2
                else f"the engine process ended unexpectedly (exit {self._process.returncode})"
            )
            if self._process.returncode == frames.IN_USE:
                self.trouble = "another gateway's engine process is using the data directory"
            return "died"
        finally:
            self._up.clear()
            changing.cancel()
            hanging.cancel()
            if not listening.done():
                await self._end(GRACE)
            await asyncio.gather(listening, changing, hanging, return_exceptions=True)

    def _ready(self, frame: frames.Ready) -> None:
        self._seen = {file: _stamp(Path(file)) for file in map(Path, frame.files)} | self._seen
        if self._asked_to_stop:
            return  # the files have changed while it came up; the next process says what is in them now
        for fault in frame.broken:
            self._watch.broken(fault.error, fault.line, fault.sentence)
        if frame.broken and not frame.workflows:
            self._error = frame.broken[0].error
        else:
            self.broken = [fault.sentence for fault in frame.broken]
            self.missing = "; ".join(self.broken) if frame.missing else ""
            self._last_good = frame.sources
            self.workflows = frame.workflows
            self.failed_starts = 0
            self._never_ready = False
            self._up.set()
            self.on_ready()
            self._watch.ready(frame.workflows)

    def _troubled(self, detail: str) -> None:
        self._file_trouble = detail
        if not self._up.is_set() and detail:
            self.trouble = detail

    async def _wait_until_it_hangs(self, link: Link) -> None:
        """Counted in looks, not by the clock: when it was we who stood still, what was sent meanwhile is read
        between one look and the next."""
        silent, seen = -STARTS_WITHIN, link.last_heard
        while silent < self._patience:
            await asyncio.sleep(1.0)
            if link.last_heard == seen:
                silent += 1.0
            else:
                silent, seen = 0.0, link.last_heard

    async def _wait_for_change(self) -> None:
        """Return when the workflow files are not what they were, and have stopped changing: an editor may
        empty one before it fills it."""
        before = self._seen
        while True:
            await asyncio.sleep(self._watch.look_every)
            now = await self._look()
            while now != self._seen and now != before:
                await asyncio.sleep(0.1)
                before, now = now, await self._look()
            if now != self._seen:
                files = sorted(now.keys() | self._seen.keys())
                self._changed = [file.name for file in files if now.get(file) != self._seen.get(file)]
                return

    async def _first_look(self) -> Stamps:
        while True:
            try:
                return await asyncio.to_thread(_stamps, self._path, set[Path]())
            except OSError as error:
                self.trouble = f"the workflows cannot be read: {error}"
                await asyncio.sleep(CHECK_FILES_EVERY)

    async def _look(self) -> Stamps:
        try:
            return await asyncio.to_thread(_stamps, self._path, set(self._seen))
        except OSError as error:  # out of descriptors, say: that is no change
            log.warning("the workflow files cannot be looked at", error=str(error))
            return self._seen

    async def _end(self, grace: float) -> None:
        process, link = self._process, self._link
        if process is None or process.returncode is not None:
            return
        self._asked_to_stop = True
        if link is not None:
            link.send(frames.Stop(grace))
        try:
            async with asyncio.timeout(grace + 2.0):
                await process.wait()
        except TimeoutError:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


def workflows_environment(own: Mapping[str, str]) -> dict[str, str]:
    """The gateway's own, without its settings: the admin's key and the database's password are no business of
    a workflow, of the programs that it starts and of their crash reports."""
    return {name: value for name, value in own.items() if not name.startswith("POSTERN_")}


def _stamps(path: Path, known: set[Path]) -> Stamps:
    return {file: _stamp(file) for file in {path, *workflow_files(path), *known}}


def _stamp(file: Path) -> tuple[int, int, int] | None:
    try:
        status = file.stat()
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            raise
        return None
    # A folder's own times change with every cache written into it; its files are looked at one by one.
    return (0, 0, 0) if file.is_dir() else (status.st_mtime_ns, status.st_size, status.st_ino)
