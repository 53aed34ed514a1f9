"""The words that a test of a workflow file imports::

    from postern.workflows.testing import load_event, run

    def test_an_order_is_found():
        went = run(order_lookup, load_event("tests/events/orders.json"), steps={"find_order": {"name": "#1001"}})
        assert went.answer.body == {"orders": [{"name": "#1001"}]}

It needs no test runner of its own; pytest finds such functions, and is given two fixtures (`pytest_plugin.py`).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, cast

from postern.workflows.event import FIELD_NAMES, event_of
from postern.workflows.language import Automation, Event, StepFailed
from postern.workflows.rehearsal import REAL, Answer, Clock, NoStandIn, Rehearsing, StepCall, is_exception

__all__ = [
    "REAL",
    "Answer",
    "Clock",
    "Ran",
    "StepCall",
    "StepFailed",
    "in_turn",
    "load_event",
    "make_event",
    "run",
]

FORMAT = "posternEvent"
VERSION = 1
"""The version of the files that `postern history save` writes."""


@dataclass(frozen=True, slots=True)
class Ran:
    """The result of a run."""

    answers: list[Answer]
    """The arguments of every call of ``respond``; the caller gets the first."""
    steps: list[StepCall]
    """The steps in the order in which they were done."""
    sleeps: list[float]
    """The seconds of each ``sleep``."""
    clock: Clock
    error: BaseException | None
    """The exception with which the workflow failed. Only with ``raises``."""
    result: Any
    """The function's result. The engine ignores it."""

    @property
    def answer(self) -> Answer | None:
        """The answer that the caller got, or None."""
        return self.answers[0] if self.answers else None

    @property
    def names(self) -> list[str]:
        """The names of the steps, in the order in which they were done."""
        return [step.name for step in self.steps]

    def calls(self, name: str) -> list[StepCall]:
        """Each time that the step of this name was done."""
        return [step for step in self.steps if step.name == name]


def run(
    workflow: Automation,
    event: Mapping[str, Any] | None = None,
    *,
    steps: Mapping[str, Any] | None = None,
    raises: type[BaseException] | tuple[type[BaseException], ...] | None = None,
    clock: Clock | None = None,
    somebody_waits: bool = True,
) -> Ran:
    """Run a workflow to its end, without an engine and without waiting.

    ``steps`` names what stands in for each step: a function that is called with the same arguments, an exception that
    every try ends with, ``in_turn(…)``, or else what the step returns; ``REAL`` is its own function. A step that is not
    named there fails the test, so that none reaches out by mistake. Without ``steps`` all of them really run.

    An error of the workflow is raised here, unless ``raises`` names it: then a run that ends otherwise fails the test.
    ``somebody_waits=False``: no caller waits for the answer, and ``respond`` returns False.
    """
    rehearsing = Rehearsing(steps, clock or Clock(), somebody_waits)
    stopped = rehearsing.carry_out(workflow, make_event() if event is None else event)
    reason = stopped.reason
    if isinstance(reason, NoStandIn):
        raise AssertionError(
            f"the workflow came to the step {reason}, and `steps` says nothing of it: name what stands in for it, or REAL"
        ) from None
    if reason is not None and (raises is None or not isinstance(reason, raises)):
        raise reason
    if reason is None and raises is not None:
        raise AssertionError(f"the workflow came to its end, and was to fail with {_names(raises)}")
    return Ran(
        rehearsing.answers, rehearsing.calls, rehearsing.sleeps, rehearsing.clock, reason, stopped.result
    )


def in_turn(*outcomes: Any) -> Any:
    """For ``steps``: one outcome for each try, an exception or what is returned.

    ``steps={"charge": in_turn(TimeoutError("no answer"), {"id": "ch_1"})}`` fails once and works then.
    """
    left = list(outcomes)

    def next_one(*_: Any, **__: Any) -> Any:
        if not left:
            raise AssertionError(f"the step was tried more often than in_turn has outcomes ({len(outcomes)})")
        outcome = left.pop(0)
        if is_exception(outcome):
            raise outcome
        return outcome

    return next_one


def make_event(payload: Mapping[str, Any] | None = None, **variables: str) -> Event:
    """An event that nobody has sent: ``make_event({"number": "1001"}, fieldOne="1001")``."""
    made: dict[str, Any] = dict.fromkeys(FIELD_NAMES, "")
    made = {"webhookId": "wh_test", **made, "invocationId": "inv_test", "payload": dict(payload or {})}
    if unknown := variables.keys() - made.keys():
        raise TypeError(f"an event has no {min(unknown)}; it has {', '.join(made)}")
    return cast(Event, event_of(json.dumps({**made, **variables})))


def load_event(file: str | PathLike[str]) -> Event:
    """The event in a file that `postern history save` wrote, as a workflow gets it."""
    path = Path(file)
    try:
        document = event_of(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path} is not JSON: {error}") from None
    version = document.get(FORMAT) if isinstance(document, dict) else None
    if version is None or not isinstance(document.get("event"), dict):
        raise ValueError(f"{path} is no event that `postern history save` wrote")
    if version != VERSION:
        raise ValueError(
            f"{path} was written by another version of Postern (format {version}, this one reads {VERSION})"
        )
    event: Event = document["event"]
    return event


def _names(kinds: type[BaseException] | tuple[type[BaseException], ...]) -> str:
    return " or ".join(kind.__name__ for kind in (kinds if isinstance(kinds, tuple) else (kinds,)))
