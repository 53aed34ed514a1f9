"""A delivery: the durable intent to start the trigger once. What the engine is given, how it went, when to
try again."""

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from msgspec import Struct

from postern.core.answer import WorkflowResponse

FIELD_NAMES = ("fieldOne", "fieldTwo", "fieldThree", "fieldFour")

State = Literal["queued", "held", "started", "completed", "failed", "lost", "dropped"]
"""``started``: its runs are at work, or nobody can say how they ended. ``failed``: it could not be started, or
a run of it failed; ``started_at`` tells which. ``lost``: the engine took it, and does not know it any more."""

FIRST_WAIT = 1.0
LONGEST_WAIT = 3600.0
GIVE_UP_AFTER = 3 * 24 * 3600.0


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


class Trigger(Struct, frozen=True):
    """What the engine is given. ``key`` is the delivery's key: starting the same key twice starts once."""

    key: str
    webhook_id: str
    invocation_id: str
    fields: dict[str, str]
    payload: bytes
    """The call's JSON object as text (a form already turned into one)."""
    response: ResponseSlot | None = None
    end: EndSlot | None = None
    """Where the engine does not tell by itself how runs end."""
    traceparent: str = ""

    @property
    def tracing(self) -> dict[str, str]:
        """The trace that the call belongs to, as a header or a variable; nothing where it belongs to none."""
        return {"traceparent": self.traceparent} if self.traceparent else {}

    @property
    def variables(self) -> dict[str, str]:
        return variables_of(self.webhook_id, self.invocation_id, self.fields)


def variables_of(webhook_id: str, invocation_id: str, fields: dict[str, str]) -> dict[str, str]:
    """The specification's trigger variables, as every engine hands them to a workflow."""
    return {
        "webhookId": webhook_id,
        **{name: fields.get(name, "") for name in FIELD_NAMES},
        "invocationId": invocation_id,
    }


def delivery_key(invocation_id: str, emission: int) -> str:
    """The idempotency key: for a key that it has already the engine starts nothing, so an emission is started once. A
    replay is the next emission, and runs again."""
    return f"{invocation_id}.{emission}"


def invocation_of_key(key: str) -> str:
    """The id of the invocation whose delivery has this key."""
    return key.rpartition(".")[0]


def wait_before_retry(attempts: int, asked_for: float | None = None) -> float:
    """Exponential, with jitter so that what failed together does not come back together; never sooner than
    asked for."""
    longest = min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(attempts - 1, 20))
    wait: float = longest * random.uniform(0.5, 1.0)
    return max(wait, min(asked_for or 0.0, LONGEST_WAIT))


class EngineUnavailable(Exception):
    """The engine cannot take the trigger now; the same start will be tried again."""

    def __init__(self, detail: str, retry_after: float | None = None, only_this: bool = False) -> None:
        """``only_this``: it says nothing of other starts, which may be for other workflows."""
        super().__init__(detail)
        self.detail = detail
        self.retry_after = retry_after
        self.only_this = only_this


class EngineRejected(Exception):
    """The engine will never take this trigger as it is."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


@dataclass(frozen=True, slots=True)
class Started:
    """``runs`` workflows took the trigger; zero means that nobody listens, which history says in words.

    ``answer`` is there when the engine answered a synchronous call together with taking it, as n8n and
    Node-RED can. It counts exactly like one that the response action posts: the first answer wins.
    """

    runs: int
    workflows: tuple[str, ...] = ()
    answer: WorkflowResponse | None = None
    at: float | None = field(default=None, compare=False)
    """Since when they run, where the engine's reply comes later than that: with the answer, or once it is on
    disk. None: since the reply."""
    failed: str = ""
    """Why its run has failed, where the engine's reply says so."""


class End(Struct, frozen=True):
    """All runs of a delivery are over. One that failed makes it a failure; ``error`` says why."""

    state: Literal["completed", "failed"]
    at: float
    error: str = ""


LONGEST_ERROR = 2000


def end_of_runs(runs: Iterable[tuple[str, float, str]]) -> End:
    """How they ended together: state, time and error of each."""
    all_runs = list(runs)
    at = max(ended_at for _, ended_at, _ in all_runs)
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
    """It runs, and something keeps a part of it from it."""


class Run(Struct, frozen=True):
    """One run of one workflow, as the engine tells it."""

    id: str
    workflow: str
    state: str
    delivery_key: str
    started_at: float
    ended_at: float | None = None
    error: str = ""
    steps: tuple[str, ...] = ()


class Workflow(Struct, frozen=True, rename="camel"):
    """A workflow the engine knows: its name, the Webhook IDs it wants (none: every webhook's), what its
    author says of it."""

    name: str
    webhook_ids: tuple[str, ...]
    help: str = ""
    source: str = ""
