"""Answers about calls: each with its verdict, and what became of it."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal

import msgspec

from postern.core.deliveries.delivery import DeliveryState, invocation_of_key
from postern.core.history import invocation as recorded
from postern.core.history.compare import Difference, Differences
from postern.core.history.marks import Bookmark, EditedFrom, Marks, Note
from postern.core.listeners import ListenerCall
from postern.usecases.answers import UNSET, Time, UnsetType, View, shown
from postern.usecases.summary import InvocationSummary, RunState, run_state_of, summary_of


class Count(View):
    """How many calls a filter finds. ``or_more``: counting ended there. ``looked_back_to``: only calls since then were
    counted, because no index helps; null if all were."""

    calls: int
    or_more: bool
    looked_back_to: Time | None


class FailedAlike(View):
    """Calls that failed with the same error, ``…`` in the place of what differs in it. ``since``: when the first of them came."""

    error: str
    count: int
    since: Time
    webhook_ids: list[str]


class Failures(View):
    """The errors with which several calls failed alike, the most frequent first. ``or_more``: more calls have failed than
    the newest 500, which were looked at."""

    items: list[FailedAlike]
    or_more: bool


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
    """``asked_by``: who admitted the call or had it replayed, and ``replay_id`` the replay of many that did; null if the
    call itself started it."""

    key: str
    emission: int
    asked_by: str | None
    replay_id: str | None
    state: DeliveryState
    fields: dict[str, str]
    created_at: Time
    released_at: Time | None
    started_at: Time | None
    next_attempt_at: Time | None
    waits_for: str | None
    """For what it waits before it is tried at first, and since when; null if not for its turn."""
    superseded_by: str | None
    """The invocation that was started in its place."""
    attempts: int
    log: list[Attempt]
    runs: int | None
    nobody_listens: bool
    run_state: RunState | None
    ended_at: Time | None
    error: str | None
    answer: str | None
    responded_at: Time | None
    late: bool
    response: Response | None


PayloadText = Annotated[
    Any, msgspec.Meta(extra_json_schema={"anyOf": [{"type": "object"}, {"type": "null"}]})
]
"""The JSON object of a call, still as its text (``msgspec.Raw``): numbers keep every digit, and readers get an object."""


class LocalRun(View):
    """A call that was replayed to a listener's program. ``status`` is null if that has not answered; once ``endedAt`` is there,
    ``error`` says why."""

    id: str
    listener: str
    by: str
    asked_by: str
    at: Time
    ended_at: Time | None
    status: int | None
    ms: float | None
    error: str


class Invocation(InvocationSummary, kw_only=True):
    path: str
    query: str
    headers: list[tuple[str, str]]
    body: str | None
    body_truncated: bool
    payload: PayloadText
    trace: list[Step]
    deliveries: list[Delivery]
    local_runs: list[LocalRun]
    """The replays to listeners."""
    judged_at: Time | None
    bookmark: Bookmark | None
    notes: list[Note]
    edited: EditedFrom | None
    edited_replays: list[str]

    @property
    def uncalled(self) -> str:
        """The words in place of the caller's answer, where nobody called."""
        if self.edited_from:
            return f"nobody sent it: it was made of {self.edited_from}"
        if self.admitted_from:
            return f"admitted from {self.admitted_from}; its caller heard {self.http_status}"
        if self.trace and self.trace[0].step == "schedule":
            return f"fetched by the schedule; {f'the source answered {self.http_status}' if self.http_status else 'the source gave no answer'}"
        return ""


class Replayed(View):
    invocation_id: str
    delivery: Delivery


def invocation_of(
    story: recorded.Story,
    payload: msgspec.Raw | None,
    local_runs: list[ListenerCall],
    marks: Marks,
    waits: Mapping[str, str] = MappingProxyType({}),
) -> Invocation:
    invocation = story.invocation
    body = invocation.body
    return Invocation(
        **msgspec.structs.asdict(summary_of(story)),
        path=invocation.path.decode("latin-1"),
        query=invocation.query.decode("latin-1"),
        headers=invocation.header_pairs,
        body=None if body is None else body.decode("utf-8", "replace"),
        body_truncated=invocation.body_is_cut,
        payload=payload,
        trace=[Step(*step) for step in invocation.steps],
        deliveries=[delivery_of(delivery, waits.get(delivery.key)) for delivery in story.deliveries],
        local_runs=[run_of(run) for run in local_runs],
        judged_at=None if story.edited else Time(invocation.received_at + invocation.duration_us / 1_000_000),
        bookmark=story.bookmark,
        notes=marks.notes,
        edited=story.edited if invocation.outcome == "edited" else None,
        edited_replays=marks.edited,
    )


def delivery_of(delivery: recorded.Delivery, waits_for: str | None = None) -> Delivery:
    response = delivery.response
    return shown(
        Delivery,
        delivery,
        released_at=None if delivery.state == "dropped" else Time.maybe(delivery.released_at),
        next_attempt_at=Time(delivery.next_at)
        if delivery.state == "queued" and (delivery.attempts or not delivery.waits_for_turn)
        else None,
        waits_for=waits_for or None,
        superseded_by=delivery.superseded_by and invocation_of_key(delivery.superseded_by),
        log=msgspec.convert(delivery.log, list[Attempt], dec_hook=lambda _, seconds: Time(seconds)),
        nobody_listens=delivery.state == "started" and delivery.runs == 0,
        run_state=run_state_of(delivery),
        error=delivery.error or None,
        answer=None if delivery.deadline is None else delivery.answer_code or "waiting",
        late=delivery.responded_at is not None and delivery.answer_code != "accepted",
        response=None
        if response is None
        else Response(
            status=response.status,
            headers=list(response.headers),
            body=response.body.decode("utf-8", "replace"),
        ),
    )


def run_of(run: ListenerCall) -> LocalRun:
    ms = None if run.duration_us is None else run.duration_us / 1000
    return shown(LocalRun, run, by=run.owner, ms=ms)


class BodyComparison(View):
    """``compared``: by path in JSON, by line in text. ``written differently`` is JSON of the same values. If there are no
    differences, it says why."""

    compared: Literal[
        "same", "json", "written differently", "text", "bytes", "too large", "too different", "gone"
    ]
    count: int
    items: list[Difference]


class Comparison(View):
    invocation_id: str
    compared_with: str
    same_webhook: bool
    request: Differences
    query: Differences
    headers: Differences
    values: Differences
    body: BodyComparison


def body_comparison(compared: Any, differences: Differences | None = None) -> BodyComparison:
    differences = differences or Differences()
    return BodyComparison(compared=compared, count=differences.count, items=differences.items)


class Outcomes(View):
    accepted: int
    filtered: int
    duplicate: int
    handshake: int
    rejected: int


class Latency(View):
    """``p50``: half of ``count`` took at most so many milliseconds, rounded up to 1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 1500,
    2500, 5000, 10000 or 30000. null: longer than that, or ``count`` is 0."""

    count: int
    p50: int | None
    p95: int | None
    p99: int | None


class Point(View):
    at: Time
    calls: int
    outcomes: Outcomes
    failed_runs: int
    latency_ms: Latency


class Total(View):
    """``answers``: by the HTTP status that callers heard. ``runs``: deliveries by how their runs ended, if the engine
    tells; ``run_ms``: how long they took. ``latency_ms``: how long callers waited."""

    calls: int
    codes: dict[str, int]
    outcomes: Outcomes
    latency_ms: Latency
    answers: dict[str, int]
    runs: dict[str, int]
    run_ms: Latency


class Chart(View):
    range: str
    since: Time
    until: Time
    step_minutes: int
    points: list[Point]
    total: Total
