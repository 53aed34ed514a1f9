"""Run a workflow without an engine, on one event: it means what it means in the engine, and no time passes."""

import contextlib
import io
import json
import sys
import traceback
from collections.abc import Callable, Mapping
from contextvars import copy_context
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from postern.workflows.language import Automation
from postern.workflows.load import load, not_ended
from postern.workflows.replay import Asleep, LeftOff, Recorded, StepReplay, Stopped, carry_on

NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)

LONGEST_TRACE = 20_000
"""Characters of the traceback of a failed workflow."""

REAL: Any = object()
"""In ``steps``: call the step's own function."""


class NoStandIn(LeftOff):
    """A step came up that ``steps`` does not name."""


class Clock:
    """A clock that stands still, but for sleeps and the pauses between a step's tries: nobody waits."""

    def __init__(self, start: datetime = NEW_YEAR) -> None:
        self._start = start.timestamp()
        self._passed = 0.0

    @property
    def passed(self) -> float:
        return self._passed

    @property
    def now(self) -> datetime:
        return datetime.fromtimestamp(self.time(), UTC)

    def time(self) -> float:
        """Seconds since 1970, as ``time.time()`` tells them."""
        return self._start + self._passed

    def advance(self, seconds: float) -> None:
        self._passed += seconds


@dataclass(slots=True)
class StepCall:
    """A step that was done, the way a run records it: once, however often it was tried."""

    name: str
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    result: Any = None
    """The result as the workflow got it: what JSON makes of what the step returned."""
    error: str = ""
    """The words of ``StepFailed``, where it failed for good."""
    tries: int = 0


@dataclass(frozen=True, slots=True)
class Answer:
    """The arguments of a call of ``respond``."""

    status: int
    headers: dict[str, str]
    body: Any


@dataclass
class Rehearsing:
    """One run, from its start to its end. When it falls asleep the clock is put forward, and it is taken up again from
    the top, past the steps that are recorded, as the engine does it."""

    steps: Mapping[str, Any] | None = None
    """Stand-ins by the name of the step: a function that is called with the same arguments, an exception that each
    try ends with, ``REAL``, or else the result. None: every step's own function."""
    clock: Clock = field(default_factory=Clock)
    answer_taken: bool = True
    """Somebody waits for the answer."""
    on_pause: Callable[[str], None] = lambda _: None
    calls: list[StepCall] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    sleeps: list[float] = field(default_factory=list)
    _recorded: list[Recorded] = field(default_factory=list)
    _at_work: StepCall | None = None

    def carry_out(self, function: Automation, event: Mapping[str, Any]) -> Stopped:
        text = json.dumps(event)
        while True:
            replay = StepReplay(
                list(self._recorded),
                self._record,
                self._answer,
                now=self.clock.time,
                wait=self.clock.advance,
                stand_in=self,
            )
            stopped = _without_a_loop(carry_on, function, text, replay)
            if not isinstance(stopped.reason, Asleep):
                return stopped
            self.clock.advance(max(0.0, float(self._recorded[-1].result or 0) - self.clock.time()))

    def action(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        chosen = REAL if self.steps is None else self.steps.get(name, NoStandIn)
        if chosen is NoStandIn:
            raise NoStandIn(name)
        call = self._at_work = StepCall(name)

        def act(*args: Any, **kwargs: Any) -> Any:
            if not call.tries:
                call.args, call.kwargs = _copied(args), _copied(kwargs)
            call.tries += 1
            if chosen is REAL:
                return function(*args, **kwargs)
            if is_exception(chosen):
                raise chosen
            return chosen(*args, **kwargs) if callable(chosen) else chosen

        return act

    def pause(self, seconds: float) -> None:
        self.on_pause(f"(would try again after {seconds:g} seconds)")
        self.clock.advance(seconds)

    def _record(
        self, position: int, step: Recorded, wake_at: float | None, awaited: bool
    ) -> Callable[[], None]:
        if position == len(self._recorded):
            self._recorded.append(step)
            if step.name == "sleep" and self._at_work is None:
                seconds = float(step.result or 0) - self.clock.time()
                self.sleeps.append(round(seconds, 6))
                self.on_pause(f"(would sleep for {seconds:g} seconds)")
        if (call := self._at_work) is not None:
            self._at_work = None
            call.result, call.error = json.loads(step.result or "null"), step.error or ""
            self.calls.append(call)
        return lambda: None  # there is no disk to wait for

    def _answer(self, document: str) -> bool:
        self.answers.append(Answer(**json.loads(document)))
        return self.answer_taken and len(self.answers) == 1


def is_exception(value: Any) -> bool:
    """Whether it can be raised: an exception or a class of exceptions."""
    return isinstance(value, BaseException) or (isinstance(value, type) and issubclass(value, BaseException))


def _copied(value: Any) -> Any:
    """Copies the arguments of a step: the workflow may change them afterwards."""
    import copy

    try:
        return copy.deepcopy(value)
    except Exception:  # a connection, say
        return value


def _without_a_loop(function: Callable[..., Stopped], *args: Any) -> Stopped:
    """Gives a run with ``async def`` an event loop of its own, as in the engine, also where a test has one
    already."""
    loops = sys.modules.get("asyncio")  # who has one has loaded it; most workflows do without
    try:
        if loops is None or loops.get_running_loop() is None:
            return function(*args)
    except RuntimeError:
        return function(*args)
    from concurrent.futures import Future
    from threading import Thread

    ended: Future[Stopped] = Future()
    context = copy_context()

    def carried_out() -> None:
        try:
            ended.set_result(context.run(function, *args))
        except BaseException as error:
            ended.set_exception(error)

    Thread(target=carried_out, daemon=True).start()  # after Ctrl-C nobody waits for one that never ends
    return ended.result()


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """The result of a rehearsal. ``answer`` is the first answer (status, headers, body), or None."""

    answer: dict[str, Any] | None = None
    error: str = ""
    printed: str = ""


class _Kept(io.StringIO):
    """Keeps what a workflow prints, even if it closes its output."""

    def close(self) -> None:
        pass


def rehearse(path: Path, name: str, event: dict[str, Any]) -> Rehearsal:
    """Run the workflow of this name from the file (or folder) on the event. Never raises on what the file
    does."""
    printed = _Kept()
    rehearsing = Rehearsing(on_pause=lambda line: print(line))
    error = ""
    with contextlib.redirect_stdout(printed):
        loaded = load(path)
        function = next((declared.function for declared in loaded.workflows if declared.name == name), None)
        if function is None and loaded.broken:
            error = f"the workflows file has an error: {loaded.broken[0].error}"
        elif function is None:
            names = ", ".join(sorted(declared.name for declared in loaded.workflows)) or "none"
            error = f"there is no workflow called {name} in {path}; there is: {names}"
        else:
            with not_ended():
                reason = rehearsing.carry_out(function, event).reason
            if isinstance(reason, KeyboardInterrupt):
                raise reason
            if reason is not None:
                error = "".join(traceback.format_exception(reason, limit=-3)).strip()[:LONGEST_TRACE]
    first = next(iter(rehearsing.answers), None)
    answer = None if first is None else {"status": first.status, "headers": first.headers, "body": first.body}
    return Rehearsal(answer, error, printed.getvalue())
