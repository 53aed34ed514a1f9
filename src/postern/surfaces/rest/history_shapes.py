"""What the API answers about calls, runs and replays."""

from typing import Any, Literal

from pydantic import ConfigDict, Field

from postern.core.history.invocation import Status
from postern.surfaces.rest.shapes import Told
from postern.surfaces.rest.signature_shapes import Step
from postern.usecases.shapes import Shape


class InvocationSummary(Told):
    id: str
    webhook_id: str
    received_at: str
    status: Status
    code: str
    detail: str
    http_status: int | None
    method: str
    address: str
    body_size: int
    duration_ms: float
    matched: str | None
    duplicate_of: str | None
    config_version: int
    runs: int | None = None
    nobody_listens: bool | None = None
    workflows: list[str] | None = None
    error: str | None = None


class Response(Told):
    status: int
    headers: list[tuple[str, str]]
    body: str


class Attempt(Told):
    at: str
    outcome: Literal["started", "unavailable", "failed"]
    detail: str | None = None
    runs: int | None = None
    workflows: list[str] | None = None


class Delivery(Told):
    key: str
    emission: int
    state: Literal["queued", "held", "started", "failed", "dropped"]
    fields: dict[str, str]
    created_at: str
    released_at: str | None
    started_at: str | None
    next_attempt_at: str | None
    attempts: int
    log: list[Attempt]
    runs: int | None
    nobody_listens: bool
    error: str | None
    answer: str | None
    responded_at: str | None
    late: bool
    response: Response | None


class Invocation(InvocationSummary):
    path: str
    query: str
    headers: list[tuple[str, str]]
    body: str | None
    body_truncated: bool
    payload: dict[str, Any] | None
    trace: list[Step]
    deliveries: list[Delivery]


class Replayed(Told):
    invocation_id: str
    delivery: Delivery


class ReplayFilter(Shape):
    """Which invocations: every part that is given must hold. Only calls that were accepted, or admitted later, can be replayed; the others
    are skipped."""

    webhook_id: str | None = Field(None, max_length=80)
    status: Status | None = None
    code: str | None = Field(None, max_length=40)
    since: str | None = Field(None, max_length=40)
    until: str | None = Field(None, max_length=40)
    search: str | None = Field(None, max_length=200)


class ReplayRequest(Shape):
    filter: ReplayFilter


class ReplayedCalls(Told):
    webhook_id: str | None
    status: Status | None
    code: str | None
    since: str | None
    until: str | None
    search: str | None


class Replay(Told):
    id: str
    state: Literal["planned", "running", "completed", "cancelled", "failed"]
    filter: ReplayedCalls
    count: int
    done: int
    skipped: int
    created_at: str
    created_by: str
    started_at: str | None
    ended_at: str | None
    error: str | None


class Run(Told):
    id: str
    workflow: str
    state: str
    delivery_key: str
    started_at: str
    ended_at: str | None
    error: str | None
    steps: list[str]


class Workflow(Told):
    name: str
    webhook_ids: list[str]
    help: str
    source: str


class ResponseAction(Shape):
    """What the waiting caller is to hear. Sent by other people's workflows: what else they say is passed
    over."""

    model_config = ConfigDict(extra="ignore")

    status: int | None = Field(None, ge=200, le=599)
    headers: dict[str, str] | None = None
    body: Any = None


class Answered(Told):
    status: Literal["answered"]


class Preview(Told):
    """Of each path that was given: the value it finds."""

    field_one: str | None = None
    field_two: str | None = None
    field_three: str | None = None
    field_four: str | None = None


class AdmitRequest(Shape):
    invocation_ids: list[str] = Field(min_length=1, max_length=1000)


class Admission(Told):
    invocation_id: str
    admitted: bool
    reason: str
    delivery_key: str | None = None


class Admitted(Told):
    items: list[Admission]
    admitted: int


class Outcomes(Told):
    accepted: int
    duplicate: int
    handshake: int
    rejected: int


class Latency(Told):
    p50: float | None
    p95: float | None
    p99: float | None


class Figures(Told):
    calls: int
    outcomes: Outcomes
    latency_ms: Latency


class Point(Figures):
    at: str


class Total(Figures):
    codes: dict[str, int]


class Chart(Told):
    range: str
    since: str
    until: str
    step_minutes: int
    points: list[Point]
    total: Total
