"""A delivery, the recorded task to start the trigger once: what the engine is given, how it went, when to try again."""

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, Required, TypedDict

from msgspec import Struct

from postern.core.answer import WorkflowResponse

FIELD_NAMES = ("fieldOne", "fieldTwo", "fieldThree", "fieldFour")

DeliveryState = Literal["queued", "held", "started", "completed", "failed", "lost", "dropped", "superseded"]
"""``started``: its runs are at work, or nobody knows how they ended. ``failed``: it could not be started, or a run failed
(then it has a ``started_at``). ``lost``: the engine has taken it, and no longer knows it. ``superseded``: a newer call was started in its place."""


class Logged(TypedDict, total=False):
    """The result of one attempt."""

    at: Required[float]
    outcome: Required[Literal["started", "unavailable", "failed"]]
    runs: int
    workflows: list[str]
    detail: str


FIRST_WAIT = 1.0
LONGEST_WAIT = 3600.0
GIVE_UP_AFTER = 3 * 24 * 3600.0
MOST_NOT_FOUND = 8
"""Tries in a row, some 90 seconds: n8n answers 404 for up to 15 seconds while it starts, and a proxy while what is behind it does."""


@dataclass(frozen=True, slots=True)
class ResponseSlot:
    """Where a workflow answers a waiting caller: one POST to ``url`` with the token, before ``deadline``."""

    url: str
    token: str = field(repr=False)
    deadline: float


@dataclass(frozen=True, slots=True)
class EndSlot:
    """Where a workflow says how it ended: one POST to ``url`` with the token."""

    url: str
    token: str = field(repr=False)


class Original(Struct, frozen=True):
    """A call as it came, as far as it is sent on."""

    method: str
    query: bytes
    headers: dict[str, str]
    body: bytes


class StartAgain(Struct, frozen=True):
    """One more start of a recorded call, and where it waits."""

    invocation_id: str
    fields: dict[str, str]
    state: DeliveryState = "queued"
    lane: str = ""
    turn: str | None = None


class Trigger(Struct, frozen=True):
    """The trigger and its delivery, as the engine gets them. Starting the same ``key``, the delivery's, twice starts once."""

    key: str
    webhook_id: str
    invocation_id: str
    fields: dict[str, str]
    payload: bytes
    """The call's JSON object as text (a form already turned into one)."""
    response: ResponseSlot | None = None
    end: EndSlot | None = None
    """None if the engine tells by itself how runs end."""
    traceparent: str = ""
    original: Original | None = None
    """The call as it came, where that is to be sent."""

    @property
    def tracing(self) -> dict[str, str]:
        """The call's trace as headers or variables, empty if it has none."""
        return {"traceparent": self.traceparent} if self.traceparent else {}

    @property
    def variables(self) -> dict[str, str]:
        return variables_of(self.webhook_id, self.invocation_id, self.fields)


def variables_of(webhook_id: str, invocation_id: str, fields: dict[str, str]) -> dict[str, str]:
    """The trigger variables, as every engine hands them to a workflow."""
    return {
        "webhookId": webhook_id,
        **{name: fields.get(name, "") for name in FIELD_NAMES},
        "invocationId": invocation_id,
    }


def delivery_key(invocation_id: str, emission: int) -> str:
    """The idempotency key. The engine starts a key once; a replay is the next emission, with another key."""
    return f"{invocation_id}.{emission}"


def invocation_of_key(key: str) -> str:
    return key.rpartition(".")[0]


def wait_before_retry(attempts: int, asked_for: float = 0.0) -> float:
    """Exponential, with jitter so that deliveries which failed together do not come back together."""
    longest = min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(attempts - 1, 20))
    wait: float = longest * random.uniform(0.5, 1.0)
    return max(wait, asked_for)


class EngineUnavailable(Exception):
    """The engine cannot take the trigger now. The start will be tried again."""

    def __init__(
        self,
        detail: str,
        retry_after: float | None = None,
        only_this: bool = False,
        may_run: bool = False,
        not_found: str = "",
    ) -> None:
        """``only_this``: other starts, for other workflows, may succeed. ``may_run``: it may have been taken all the same.
        ``not_found``: how ``detail`` begins where nothing is at that address, perhaps only until the engine has started."""
        super().__init__(detail)
        self.detail = detail
        self.retry_after = min(retry_after or 0.0, LONGEST_WAIT)
        self.only_this = only_this
        self.may_run = may_run
        self.not_found = not_found


class EngineRejected(Exception):
    """The engine will never take this trigger as it is. ``answer``: what a waiting caller hears of it, where that is the engine's."""

    def __init__(self, detail: str, answer: WorkflowResponse | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.answer = answer


@dataclass(frozen=True, slots=True)
class Started:
    """``runs`` workflows took the trigger; zero means that nobody listens.

    ``answer``: what the engine answered the caller while taking it, as n8n and Node-RED can. It counts like an answer of
    the response action: the first one wins.
    """

    runs: int
    workflows: tuple[str, ...] = ()
    answer: WorkflowResponse | None = None
    at: float | None = field(default=None, compare=False)
    """Since when they run, if that was before the engine's reply. None: since the reply."""
    failed: str = ""
    """Why its run has failed, if the engine's reply says so."""


class End(Struct, frozen=True):
    """How all runs of a delivery ended: ``failed`` if one has failed."""

    state: Literal["completed", "failed"]
    at: float
    error: str = ""
    answer: WorkflowResponse | None = None
    """The words that a waiting caller hears of it, where they are the engine's."""


LONGEST_ERROR = 2000


EndOfRun = tuple[str, float | None, str]
"""A run's state, the time of its end and its error. The time is None while the run is not over."""


def end_of_runs(runs: Iterable[EndOfRun]) -> End | None:
    """None if a run is not over, and if there is none."""
    all_runs = list(runs)
    ends = [ended_at for _, ended_at, _ in all_runs if ended_at is not None]
    if not ends or len(ends) < len(all_runs):
        return None
    at = max(ends)
    errors = [error or "no reason was given" for state, _, error in all_runs if state != "completed"]
    if not errors:
        return End("completed", at)
    more = f" (and {len(errors) - 1} more failed)" if len(errors) > 1 else ""
    return End("failed", at, errors[0][: LONGEST_ERROR - len(more)] + more)


class EngineHealth(Struct, frozen=True):
    ok: bool
    detail: str
    cannot_start: bool = False
    """It was tried again and again: somebody has to help."""
    problems: tuple[str, ...] = ()
    """A trouble that keeps a part of a running engine from working, as a broken workflow file does."""


class RunStep(Struct, frozen=True):
    """A step that is recorded. ``seconds``: how long it took with all its tries; of a sleep, how long it was to be."""

    name: str
    seconds: float | None = None
    error: str = ""


class Run(Struct, frozen=True):
    id: str
    workflow: str
    state: str
    delivery_key: str
    started_at: float
    ended_at: float | None = None
    error: str = ""
    steps: tuple[RunStep, ...] = ()


class Workflow(Struct, frozen=True, rename="camel"):
    """A workflow that the engine knows. ``webhook_ids``: whose calls it wants; empty for all. ``help``: what its author
    says of it."""

    name: str
    webhook_ids: tuple[str, ...]
    help: str = ""
    source: str = ""
