"""The embedded engine as the gateway holds it: asks the engine process, which a supervisor keeps running."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from stat import S_IWOTH
from typing import Literal

from postern.core.deliveries.delivery import (
    End,
    EngineHealth,
    EngineUnavailable,
    Run,
    Started,
    Trigger,
    Workflow,
)
from postern.engines.embedded import frames
from postern.engines.embedded.link import OnEnd, TakeAnswer
from postern.engines.embedded.supervisor import Supervisor
from postern.engines.handover import ended_when_asked
from postern.observe.logs import log
from postern.observe.watching import Watch
from postern.private_files import make_folder, private_folder

PATIENCE = 30.0
ASKED_EVERY = 1.0
ASKED_AT_ONCE = 500

_NOTHING_RUNS = End("completed", 0.0)


class EmbeddedEngine:
    """Runs the workflows of one file or folder, in a process of its own, on ``<data_dir>/engine.db``."""

    name = "embedded"
    asked_after: float | None = 10.0

    def __init__(
        self,
        data_dir: Path,
        workflows: Path,
        *,
        at_once: int = 100,
        keep_runs_days: float = 7.0,
        hangs_after: float = 10.0,
        log: str = "json",
        watch: Watch | None = None,
    ) -> None:
        watch = watch or Watch()
        self._data_dir = data_dir.resolve()
        self._path = workflows.resolve()
        self.environment: dict[str, str] = {}
        """Variables that workflow files find in their environment besides the gateway's own, which win."""
        setup = frames.SetupFrame(
            file=str(self._data_dir / "engine.db"),
            workflows=str(self._path),
            keep_seconds=keep_runs_days * 86400,
            at_once=at_once,
            hangs_after=hangs_after,
            log=log,
            reports_runs=watch.wants_runs,
        )
        self._supervisor = Supervisor(setup, self.environment, watch)
        self._supervisor.on_end = self._ended
        self._on_end: OnEnd = lambda _, __: None
        self._awaited: dict[str, asyncio.Future[End]] = {}
        """Deliveries whose callers wait, until their runs have ended."""
        self._told_later: set[str] = set()
        """Keys of ``_awaited`` whose runs are started, and for whose end somebody waits in ``ended``."""
        self._asking: asyncio.Task[None] | None = None
        self._task: asyncio.Task[None] | None = None

    def report_to(
        self, take_answer: TakeAnswer, on_end: OnEnd, on_ready: Callable[[], None] = lambda: None
    ) -> None:
        """Sets who records answers and ends, and who hears that starts are taken again. To be called before
        ``open``."""
        self._supervisor.take_answer, self._supervisor.on_ready = take_answer, on_ready
        self._on_end = on_end

    def _ended(self, key: str, end: End) -> None:
        self._end_wait(key, end)
        self._on_end(key, end)

    def _end_wait(self, key: str, end: End) -> None:
        waiting = self._awaited.pop(key, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(end)

    async def open(self) -> None:
        """Begin to start the process; until it is there the engine is *unavailable*. A folder that is missing
        is made."""
        private_folder(self._data_dir)
        if self._path.suffix != ".py":
            make_folder(self._path)
            if self._path.stat().st_mode & S_IWOTH:
                log.warning(
                    "everybody may write into the workflow folder, and its files are run",
                    folder=str(self._path),
                )
        self._task = asyncio.create_task(self._supervisor.run(), name="embedded engine")

    async def start(self, trigger: Trigger) -> Started:
        deadline = trigger.response.deadline if trigger.response else None

        def question(id: int) -> frames.Start:
            return frames.Start(
                id,
                trigger.key,
                trigger.webhook_id,
                trigger.variables | trigger.tracing,
                trigger.payload,
                deadline,
            )

        if deadline is not None:
            self._awaited[trigger.key] = asyncio.get_running_loop().create_future()
        try:
            done = await self._supervisor.link.ask(question, PATIENCE)
        except BaseException:
            self._awaited.pop(trigger.key, None)
            raise
        if self._supervisor.missing and not (done.started and done.started.runs):
            self._awaited.pop(trigger.key, None)
            raise EngineUnavailable(f"no workflow wants it, but {self._supervisor.missing}", only_this=True)
        return done.started or Started(0)

    async def ended(self, key: str) -> Literal["completed", "failed"]:
        waiting = self._awaited.get(key)
        if waiting is None:
            return await ended_when_asked(self.ends, key)
        # The process tells by itself. Who waits here is alone with this key.
        self._told_later.add(key)
        if self._asking is None:
            self._asking = asyncio.create_task(self._ask_now_and_again(), name="ends that callers wait for")
        try:
            return (await waiting).state
        finally:
            self._told_later.discard(key)
            self._awaited.pop(key, None)

    async def _ask_now_and_again(self) -> None:
        """Asks for ends that a process which died did not tell. It asks for many keys at once, and only for those
        that have waited for a while: most ends come within milliseconds, and a timer for each would cost more than
        hearing of it."""
        try:
            while before := frozenset(self._told_later):
                await asyncio.sleep(ASKED_EVERY)
                keys = list(before & self._told_later)
                for first in range(0, len(keys), ASKED_AT_ONCE):
                    some = keys[first : first + ASKED_AT_ONCE]
                    with suppress(EngineUnavailable):
                        known_ends = await self.ends(some)
                        for key in some:
                            if (end := known_ends.get(key, _NOTHING_RUNS)) is not None:
                                self._end_wait(key, end)
        finally:
            self._asking = None

    async def ends(self, keys: list[str]) -> dict[str, End | None]:
        done = await self._supervisor.link.ask(lambda id: frames.AskEnds(id, keys), PATIENCE)
        return done.ends

    async def health(self) -> EngineHealth:
        if defect := self._supervisor.defect():
            return EngineHealth(False, defect, cannot_start=self._supervisor.cannot_start)
        known = len(self._supervisor.workflows or ())
        return EngineHealth(
            True,
            f"running, {known} workflow{'' if known == 1 else 's'} in {self._path.name}",
            problems=tuple(self._supervisor.broken),
        )

    async def workflows(self) -> list[Workflow] | None:
        """Returns the workflows that the engine knows, or knew last while its files have an error."""
        if self._supervisor.workflows is None:
            raise EngineUnavailable(self._supervisor.trouble, 1.0)
        return list(self._supervisor.workflows)

    async def runs(self, limit: int = 50, delivery_key: str | None = None) -> list[Run] | None:
        done = await self._supervisor.link.ask(lambda id: frames.Runs(id, limit, delivery_key), PATIENCE)
        return done.runs

    async def forget(self, keys: list[str]) -> None:
        for first in range(0, len(keys), 100):
            await self._supervisor.link.ask(partial(frames.Forget, keys=keys[first : first + 100]), PATIENCE)

    async def close(self) -> None:
        """Give running workflows a moment, then end the process. Unfinished runs go on when the engine is
        opened again."""
        at_work = [task for task in (self._task, self._asking) if task is not None]
        for task in at_work:
            task.cancel()
        await asyncio.gather(*at_work, return_exceptions=True)

    @property
    def process_id(self) -> int | None:
        return self._supervisor.process_id
