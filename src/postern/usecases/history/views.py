"""What is answered about calls: each with its verdict, and what became of it."""

from typing import Any, Literal

import msgspec

from postern.core.deliveries.delivery import State
from postern.core.history import invocation as recorded
from postern.core.history.invocation import Status, status_of
from postern.usecases.answers import UNSET, Time, UnsetType, View


class InvocationSummary(View, kw_only=True):
    id: str
    webhook_id: str
    received_at: Time
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
    runs: int | UnsetType | None = UNSET
    nobody_listens: bool | UnsetType = UNSET
    error: str | UnsetType | None = UNSET
    workflows: list[str] | UnsetType | None = UNSET


class Step(View):
    step: str
    ok: bool
    detail: str


class Response(View):
    status: int
    headers: list[tuple[str, str]]
    body: str


class Attempt(View):
    at: Time
    outcome: Literal["started", "unavailable", "failed"]
    runs: int | UnsetType = UNSET
    workflows: list[str] | UnsetType = UNSET
    detail: str | UnsetType = UNSET


class Delivery(View):
    key: str
    emission: int
    state: State
    fields: dict[str, str]
    created_at: Time
    released_at: Time | None
    started_at: Time | None
    next_attempt_at: Time | None
    attempts: int
    log: list[Attempt]
    runs: int | None
    nobody_listens: bool
    error: str | None
    answer: str | None
    responded_at: Time | None
    late: bool
    response: Response | None


class Invocation(InvocationSummary, kw_only=True):
    path: str
    query: str
    headers: list[tuple[str, str]]
    body: str | None
    body_truncated: bool
    payload: dict[str, Any] | None
    trace: list[Step]
    deliveries: list[Delivery]


class Replayed(View):
    invocation_id: str
    delivery: Delivery


class Preview(View):
    """Of each path that was given: the value it finds."""

    field_one: str | UnsetType | None = UNSET
    field_two: str | UnsetType | None = UNSET
    field_three: str | UnsetType | None = UNSET
    field_four: str | UnsetType | None = UNSET


class Outcomes(View):
    accepted: int
    duplicate: int
    handshake: int
    rejected: int


class Latency(View):
    p50: float | None
    p95: float | None
    p99: float | None


class Point(View):
    at: Time
    calls: int
    outcomes: Outcomes
    latency_ms: Latency


class Total(View):
    calls: int
    codes: dict[str, int]
    outcomes: Outcomes
    latency_ms: Latency


class Chart(View):
    range: str
    since: Time
    until: Time
    step_minutes: int
    points: list[Point]
    total: Total


class Recording(View):
    """``webhooks``: how many it concerns."""

    webhooks: int
    recording_until: Time


class NotRecording(View):
    """``webhooks``: how many it concerns."""

    webhooks: int
    recording_until: None


class Variable(View):
    """``expressions``: how each kind of workflow writes it."""

    path: str
    type: str
    example: Any
    expressions: dict[str, str]


class Sample(View):
    """``event`` is null where nothing has been recorded yet."""

    webhook_id: str
    recording_until: Time | None
    recorded_at: Time | None
    invocation_id: str | None
    event: dict[str, Any] | None
    variables: list[Variable]


def summary_of(invocation: recorded.Invocation, deliveries: list[recorded.Delivery]) -> InvocationSummary:
    """``deliveries`` in the order of their emissions. The status follows the newest; what the caller heard is
    the first one's for ever."""
    newest = deliveries[-1] if deliveries else None
    first = deliveries[0] if deliveries and deliveries[0].emission == 1 else None
    return InvocationSummary(
        id=invocation.id,
        webhook_id=invocation.webhook_id,
        received_at=Time(invocation.received_at),
        status=status_of(invocation.outcome, newest),
        code=invocation.code,
        detail=invocation.detail,
        http_status=_http_status(invocation, first),
        method=invocation.method,
        address=invocation.address,
        body_size=invocation.body_size,
        duration_ms=_duration(invocation, first),
        matched=invocation.matched or None,
        duplicate_of=invocation.duplicate_of,
        config_version=invocation.config_version,
        runs=newest.runs if newest else UNSET,
        nobody_listens=newest.state == "started" and newest.runs == 0 if newest else UNSET,
        error=newest.error or None if newest else UNSET,
        workflows=_workflows(newest) if newest else UNSET,
    )


def invocation_of(
    invocation: recorded.Invocation, deliveries: list[recorded.Delivery], payload: dict[str, Any] | None
) -> Invocation:
    """The call as stored, the verdict with its trace, every delivery with its attempts."""
    body = invocation.body
    return Invocation(
        **msgspec.structs.asdict(summary_of(invocation, deliveries)),
        path=invocation.path.decode("latin-1"),
        query=invocation.query.decode("latin-1"),
        headers=msgspec.json.decode(invocation.headers, type=list[tuple[str, str]]),
        body=None if body is None else body.decode("utf-8", "replace"),
        body_truncated=body is not None and len(body) < invocation.body_size,
        payload=payload,
        trace=[
            Step(step=step, ok=ok, detail=detail)
            for step, ok, detail in msgspec.json.decode(invocation.trace)
        ],
        deliveries=[delivery_of(one) for one in deliveries],
    )


def delivery_of(one: recorded.Delivery) -> Delivery:
    response = one.response
    return Delivery(
        key=one.key,
        emission=one.emission,
        state=one.state,
        fields=one.fields,
        created_at=Time(one.created_at),
        released_at=None if one.state == "dropped" else Time.maybe(one.released_at),
        started_at=Time.maybe(one.started_at),
        next_attempt_at=Time(one.next_at) if one.state == "queued" else None,
        attempts=one.attempts,
        log=msgspec.convert(one.log, list[Attempt], dec_hook=lambda _, seconds: Time(seconds)),
        runs=one.runs,
        nobody_listens=one.state == "started" and one.runs == 0,
        error=one.error or None,
        answer=None if one.deadline is None else one.answer_code or "waiting",
        responded_at=Time.maybe(one.responded_at),
        late=one.responded_at is not None and one.answer_code != "accepted",
        response=None
        if response is None
        else Response(
            status=response.status,
            headers=list(response.headers),
            body=response.body.decode("utf-8", "replace"),
        ),
    )


def _workflows(delivery: recorded.Delivery) -> list[str] | None:
    """Which ones the newest start that named any has started."""
    named = (entry["workflows"] for entry in reversed(delivery.log) if "workflows" in entry)
    return msgspec.convert(next(named, None), list[str] | None)


def _http_status(invocation: recorded.Invocation, first: recorded.Delivery | None) -> int | None:
    if invocation.status:
        return invocation.status
    if first is None or not first.answer_code:
        return None
    known = {"completed": 200, "workflow_failed": 502, "response_timeout": 504}
    return (
        first.response.status
        if first.answer_code == "accepted" and first.response
        else known.get(first.answer_code)
    )


def _duration(invocation: recorded.Invocation, first: recorded.Delivery | None) -> float:
    if first is not None and first.answer_code == "accepted" and first.responded_at is not None:
        return round((first.responded_at - invocation.received_at) * 1000, 3)
    return invocation.duration_us / 1000
