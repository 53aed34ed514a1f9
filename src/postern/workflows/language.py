"""The five words of a workflow: workflow, step, sleep, respond, and the event it is given.

Nothing here knows an engine. An engine puts a ``Runner`` into the context before it runs a workflow; the words ask that
one.
"""

import functools
import inspect
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ParamSpec, Protocol, TypedDict, TypeVar, overload

P = ParamSpec("P")
R = TypeVar("R")


class Event(TypedDict):
    """The event that a workflow gets: the trigger's variables by name, and the call's whole JSON object as
    ``payload``."""

    webhookId: str
    fieldOne: str
    fieldTwo: str
    fieldThree: str
    fieldFour: str
    invocationId: str
    payload: dict[str, Any]


Automation = Callable[[Any], object]
F = TypeVar("F", bound=Automation)

WORKFLOW_NAME = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_. -]{0,98}[A-Za-z0-9_])?")


@dataclass(frozen=True, slots=True)
class Declared:
    """A function its author declared to be a workflow, and the condition it declared."""

    name: str
    webhook_ids: tuple[str, ...]
    function: Automation
    at_once: int | None = None
    """How many of its runs may work at the same moment. None: as many as there is room for."""
    file: str = ""
    """The file whose loading declared it."""

    @property
    def help(self) -> str:
        """Its author's description, on one line."""
        return " ".join((self.function.__doc__ or "").split())

    @property
    def source(self) -> str:
        """The place where it is written: ``orders.py:12``."""
        code = getattr(inspect.unwrap(self.function), "__code__", None)
        return f"{Path(code.co_filename).name}:{code.co_firstlineno}" if code else ""

    def wants(self, webhook_id: str) -> bool:
        return not self.webhook_ids or webhook_id in self.webhook_ids


class StandIn(Protocol):
    """Replaces, in a rehearsal, a step's own function and the waiting between its tries."""

    def action(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Returns the function to call in place of the step's own."""

    def pause(self, seconds: float) -> None: ...


@dataclass(slots=True)
class Once:
    """The result of a step, which is done once for a run, however often that is taken up again."""

    result: str | None = None
    """The result as JSON, or None: then the step is still to be done, and this is to be set."""
    awaited: bool = True
    """The workflow goes on when the result is on disk. Else it goes on at once, and its next word waits for that."""
    stand_in: StandIn | None = None


class Runner(Protocol):
    """Runs a workflow, and decides what its words do."""

    def once(self, name: str) -> AbstractContextManager[Once]:
        """Around a step: its result is recorded at the end, and so is a ``StepFailed`` from within. A recorded
        one is handed out, or raised."""

    def sleep(self, seconds: float) -> None: ...

    def answer(self, document: str) -> bool:
        """Hand the answer over, as JSON: status, headers, body. True if it is the one that the caller gets."""


_runner: ContextVar[Runner | None] = ContextVar("runner", default=None)
_in_step: ContextVar[bool] = ContextVar("in_step", default=False)
_collected: ContextVar[list[Declared] | None] = ContextVar("collected", default=None)


class StepFailed(Exception):
    """A step failed. It reads the same when the run is taken up again after a crash, when the first error is
    long gone."""


@overload
def workflow(webhook_id: F, /) -> F: ...
@overload
def workflow(
    webhook_id: str | Sequence[str] | None = None, *, name: str | None = None, at_once: int | None = None
) -> Callable[[F], F]: ...
def workflow(
    webhook_id: Any = None, *, name: str | None = None, at_once: int | None = None, **more: object
) -> Any:
    """Declare a workflow. It gets every webhook's events unless it names the Webhook IDs it wants.

    An unset or empty Webhook ID means every webhook, so that it may come from the environment. With
    ``at_once`` no more than that many of its runs work at the same moment.
    """
    _nothing_more("@workflow", more, "webhook_id", "name", "at_once")
    if callable(webhook_id):
        return workflow()(webhook_id)
    if not isinstance(webhook_id, str) and webhook_id is not None and not list(webhook_id):
        raise ValueError("an empty list of Webhook IDs: this workflow would never run")
    if at_once is not None and (not isinstance(at_once, int) or at_once < 1):
        raise ValueError(f"at_once={at_once!r}: it is a number from 1 on")
    webhook_ids = (webhook_id,) if isinstance(webhook_id, str) else tuple(webhook_id or ())

    def declare(function: F) -> F:
        title = name or function.__name__
        if not WORKFLOW_NAME.fullmatch(title):
            raise ValueError(
                f"{title!r} cannot be a workflow's name: use letters, digits, spaces, dots, dashes and underscores"
            )
        with suppress(ValueError):  # nobody can say what a function that is not Python's takes
            _takes_the_event(function, title)
        collected = _collected.get()
        if collected is not None:
            for other in collected:
                if other.name == title:
                    raise ValueError(f"two workflows are called {title}: the other one is {other.source}")
            ids = tuple(filter(None, webhook_ids))
            collected.append(Declared(title, ids, function, at_once, _file_being_loaded()))
        return function

    return declare


def _file_being_loaded() -> str:
    frame = inspect.currentframe()
    while frame is not None and frame.f_code.co_name != "<module>":
        frame = frame.f_back
    return frame.f_code.co_filename if frame else ""


@overload
def step(function: Callable[P, R], /) -> Callable[P, R]: ...
@overload
def step(
    *, retries: int = 0, wait: float = 1.0, name: str | None = None
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def step(
    function: Any = None, *, retries: int = 0, wait: float = 1.0, name: str | None = None, **more: object
) -> Any:
    """Declare a step: its result is kept, so that a run taken up again after a crash does not do it again.

    Its result must be JSON. With ``retries`` it is tried again that often, after ``wait`` seconds, then
    twice as long, …
    """
    _nothing_more("@step", more, "retries", "wait", "name")
    if function is None:
        return lambda real: step(real, retries=retries, wait=wait, name=name)  # type: ignore[call-overload] # `real` has any type
    trying = _Trying(function, name or function.__name__, retries, wait)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if (runner := _runner_of_steps()) is None:
            return function(*args, **kwargs)
        with runner.once(trying.title) as once:
            if once.result is None:
                once.result = trying.as_result(trying.call(once.stand_in, args, kwargs))
        # Read back: the first run sees exactly what a later one will.
        return json.loads(once.result)

    @functools.wraps(function)
    async def call_async(*args: Any, **kwargs: Any) -> Any:
        if (runner := _runner_of_steps()) is None:
            return await function(*args, **kwargs)
        with runner.once(trying.title) as once:
            if once.result is None:
                result = await trying.call_async(once.stand_in, args, kwargs)
                once.result = trying.as_result(result)
        return json.loads(once.result)

    return call_async if inspect.iscoroutinefunction(function) else call


def _nothing_more(word: str, more: Mapping[str, object], *known: str) -> None:
    for name in more:
        from difflib import get_close_matches  # here: nearly nobody needs it

        near = get_close_matches(name, known, 1)
        raise TypeError(
            f"{word} takes no {name}: " + (f"did you mean {near[0]}?" if near else ", ".join(known))
        )


def _takes_the_event(function: Automation, title: str) -> None:
    try:
        inspect.signature(function).bind({})
    except TypeError as error:
        raise TypeError(f"{title} can never run: it is called with one value, the event") from error


def _runner_of_steps() -> Runner | None:
    """Returns None if the function is an ordinary one here. A step within a step is part of it."""
    return None if _in_step.get() else _runner.get()


@dataclass(frozen=True, slots=True)
class _Trying:
    """A step's function, how often it is tried, and how its result is recorded."""

    function: Callable[..., Any]
    title: str
    retries: int
    wait: float

    def call(self, stand_in: StandIn | None, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        action, wait = self._action(stand_in), time.sleep if stand_in is None else stand_in.pause
        with _within_a_step():
            attempt = 0
            while True:
                try:
                    return action(*args, **kwargs)
                except Exception as error:
                    wait(self._pause(attempt, error))
                attempt += 1

    async def call_async(
        self, stand_in: StandIn | None, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        import asyncio

        action = self._action(stand_in)
        with _within_a_step():
            attempt = 0
            while True:
                try:
                    result = action(*args, **kwargs)
                    # A stand-in may be a plain function.
                    return await result if inspect.isawaitable(result) else result
                except Exception as error:
                    pause = self._pause(attempt, error)
                if stand_in is None:
                    await asyncio.sleep(pause)
                else:
                    stand_in.pause(pause)
                attempt += 1

    def _action(self, stand_in: StandIn | None) -> Callable[..., Any]:
        return self.function if stand_in is None else stand_in.action(self.title, self.function)

    def _pause(self, attempt: int, error: Exception) -> float:
        if attempt == self.retries:
            raise StepFailed(f"{self.title} failed: {type(error).__name__}: {error}") from error
        return min(self.wait * float(2**attempt), 60.0)

    def as_result(self, value: Any) -> str:
        return as_json(value, f"what {self.title} returned")


@contextmanager
def _within_a_step() -> Iterator[None]:
    token = _in_step.set(True)
    try:
        yield
    finally:
        _in_step.reset(token)


def sleep(seconds: float) -> None:
    """Wait, for as long as you like: the run goes on at the same moment even if everything was restarted
    meanwhile."""
    if _in_step.get():
        raise RuntimeError("sleep() belongs between steps, not inside one")
    if not isinstance(seconds, (int, float)):
        raise TypeError(f"sleep({seconds!r}): it takes seconds, as sleep(3600)")
    if seconds > 0:
        _running("sleep").sleep(seconds)


def respond(body: Any = None, status: int = 200, headers: dict[str, str] | None = None) -> bool:
    """The response action: answer the caller that waits. True if this was the answer it got.

    False where nobody waits: the webhook answers at once, another workflow was faster, or the time was over.
    """
    if not isinstance(status, int) or not 200 <= status <= 599:
        raise ValueError(f"{status!r} cannot be an answer's status: it is a number from 200 to 599")
    fields = {"status": int(status), "headers": dict(headers or {}), "body": body}
    members = (f'"{name}": {as_json(value, f"the {name}")}' for name, value in fields.items())
    runner, document = _running("respond"), "{" + ", ".join(members) + "}"
    if _in_step.get():  # it is a part of the step
        return runner.answer(document)
    with runner.once("respond") as once:
        once.awaited = False  # most runs end here, and that is then one commit with this
        if once.result is None:
            once.result = as_json(runner.answer(document), "whether it was taken")
    return once.result == "true"


def as_json(value: Any, what: str) -> str:
    """The value as it is recorded or sent."""
    try:
        return json.dumps(value)
    except (TypeError, ValueError, RecursionError) as error:
        why = (
            "a step was not awaited: write await before its call, in a workflow that begins with async def"
            if "type coroutine" in str(error)
            else str(error)
        )
        raise StepFailed(f"{what} is not JSON: {why}") from error


def _running(word: str) -> Runner:
    runner = _runner.get()
    if runner is None:
        raise RuntimeError(
            f"{word}() works while a workflow runs; to try one without an engine use postern.workflows.testing.run"
        )
    return runner


@contextmanager
def running(runner: Runner) -> Iterator[None]:
    """Gives the words the meaning of this runner."""
    token = _runner.set(runner)
    try:
        yield
    finally:
        _runner.reset(token)


def carry_out(function: Automation, event: Any) -> Any:
    """Run the workflow to its end, in this thread; what it returns nobody but a test wants to know. One written with ``async def`` gets an event loop of its own, so
    that what blocks in it holds up nobody else."""
    result = function(event)
    if inspect.iscoroutine(result):
        import asyncio  # here: most workflows do without, and so should their start

        return asyncio.run(result)
    return result


@contextmanager
def collecting() -> Iterator[list[Declared]]:
    declared: list[Declared] = []
    token = _collected.set(declared)
    try:
        yield declared
    finally:
        _collected.reset(token)
