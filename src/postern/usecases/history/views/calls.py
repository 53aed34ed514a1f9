"""Calls: each with its verdict, and what became of it."""

from typing import Annotated, Any, Literal

import msgspec

from postern.core.deliveries.delivery import State
from postern.core.history import invocation as recorded
from postern.core.history.invocation import Status, status_of
from postern.core.history.marks import CallNote, Marks
from postern.core.listeners import Handed
from postern.usecases.answers import UNSET, Time, UnsetType, View, shown

RunState = Literal["running", "completed", "failed", "unknown"]
"""``unknown``: the engine does not tell how runs end, or knows them no longer (status ``lost``)."""


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
    answered_at: Time | None
    caller_gone: bool
    bookmarked: bool
    edited_from: str | None
    webhook_name: str | UnsetType | None = UNSET
    """In lists, as are the next two. Null where the webhook is deleted."""
    event: str | UnsetType = UNSET
    """What has happened at the sender; empty where the call does not say."""
    fields: dict[str, str] | UnsetType = UNSET
    """The mapped values, the beginning of long ones. Of a call that started nothing: what the mapping finds now."""
    runs: int | UnsetType | None = UNSET
    nobody_listens: bool | UnsetType = UNSET
    run_state: RunState | UnsetType | None = UNSET
    ended_at: Time | UnsetType | None = UNSET
    error: str | UnsetType | None = UNSET
    workflows: list[str] | UnsetType | None = UNSET
    listener: str | UnsetType | None = UNSET
    """The `postern listen` that the call was handed to in the place of the engine."""


class Count(View):
    """How many calls a filter finds. ``or_more``: counting ended there. ``looked_back_to``: where no index helps, the
    calls since then were counted alone; null where all were."""

    calls: int
    or_more: bool
    looked_back_to: Time | None


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
    listener: str | UnsetType = UNSET


class Delivery(View):
    """``asked_by``: who admitted the call or had it replayed, and ``replay_id`` the replay of many that did; null where
    the call itself started it.
    ``listener``: the `postern listen` that was given it in the place of the engine."""

    key: str
    emission: int
    asked_by: str | None
    replay_id: str | None
    listener: str | None
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
    run_state: RunState | None
    ended_at: Time | None
    error: str | None
    answer: str | None
    responded_at: Time | None
    late: bool
    response: Response | None


class Bookmark(View):
    at: Time
    by: str


class Note(View):
    id: str
    at: Time
    by: str
    text: str


class EditedFrom(View):
    """``changed``: what differs from the call that it was made of, in words."""

    invocation_id: str
    by: str
    changed: list[str]


PayloadText = Annotated[
    Any, msgspec.Meta(extra_json_schema={"anyOf": [{"type": "object"}, {"type": "null"}]})
]
"""The JSON object that a call carried, still as its text (``msgspec.Raw``): a number keeps every digit, and nobody waits
for a megabyte to be opened and written again. Whoever reads an answer has the object."""


class LocalRun(View):
    """A call at a listener's program. ``status`` is null where that has not answered; ``error`` says why, once
    ``endedAt`` is there."""

    id: str
    kind: Literal["answer", "replay"]
    listener: str
    by: str
    asked_by: str | None
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
    """Where it was handed to listeners: to be answered, or replayed to them."""
    judged_at: Time | None
    bookmark: Bookmark | None
    notes: list[Note]
    edited: EditedFrom | None
    edited_replays: list[str]


class Replayed(View):
    invocation_id: str
    delivery: Delivery


def summary_of(story: recorded.Story) -> InvocationSummary:
    """The status follows the newest delivery; what the caller heard is the first one's for ever."""
    invocation, deliveries = story.invocation, story.deliveries
    newest = deliveries[-1] if deliveries else None
    first = deliveries[0] if deliveries and deliveries[0].emission == 1 else None
    return InvocationSummary(
        id=invocation.id,
        webhook_id=invocation.webhook_id,
        received_at=Time(invocation.received_at),
        status=status_of(invocation.outcome, newest),
        code=invocation.code,
        detail=invocation.detail,
        http_status=_http_status(story, first),
        method=invocation.method,
        address=invocation.address,
        body_size=invocation.body_size,
        duration_ms=_duration(story, first),
        matched=invocation.matched or None,
        duplicate_of=invocation.duplicate_of,
        config_version=invocation.config_version,
        answered_at=Time(story.answered.at) if story.answered else None,
        caller_gone=story.answered is not None and not story.answered.reached,
        bookmarked=story.bookmark is not None,
        edited_from=story.edited.made_from if story.edited else None,
        runs=newest.runs if newest else UNSET,
        nobody_listens=newest.state == "started" and newest.runs == 0 if newest else UNSET,
        run_state=_run_state(newest) if newest else UNSET,
        ended_at=Time.maybe(newest.ended_at) if newest else UNSET,
        error=newest.error or None if newest else UNSET,
        workflows=_workflows(newest) if newest else UNSET,
        listener=_listener(newest) if newest else UNSET,
    )


_headers = msgspec.json.Decoder(list[tuple[str, str]])


def invocation_of(
    story: recorded.Story, payload: msgspec.Raw | None, local_runs: list[Handed], marks: Marks
) -> Invocation:
    """The call as stored, the verdict with its trace, every delivery with its attempts."""
    invocation = story.invocation
    body = invocation.body
    return Invocation(
        **msgspec.structs.asdict(summary_of(story)),
        path=invocation.path.decode("latin-1"),
        query=invocation.query.decode("latin-1"),
        headers=_headers.decode(invocation.headers),
        body=None if body is None else body.decode("utf-8", "replace"),
        body_truncated=invocation.body_is_cut,
        payload=payload,
        trace=[Step(step, ok, detail) for step, ok, detail in msgspec.json.decode(invocation.trace)],
        deliveries=[delivery_of(one) for one in story.deliveries],
        local_runs=[run_of(one) for one in local_runs],
        judged_at=None if story.edited else Time(invocation.received_at + invocation.duration_us / 1_000_000),
        bookmark=Bookmark(at=Time(story.bookmark.at), by=story.bookmark.author) if story.bookmark else None,
        notes=[note_of(one) for one in marks.notes],
        edited=EditedFrom(
            invocation_id=story.edited.made_from, by=story.edited.author, changed=story.edited.changed
        )
        if story.edited
        else None,
        edited_replays=marks.edited,
    )


def note_of(note: CallNote) -> Note:
    return shown(Note, note, by=note.author)


def delivery_of(one: recorded.Delivery) -> Delivery:
    response = one.response
    return shown(
        Delivery,
        one,
        listener=_listener(one),
        released_at=None if one.state == "dropped" else Time.maybe(one.released_at),
        next_attempt_at=Time(one.next_at) if one.state == "queued" else None,
        log=msgspec.convert(one.log, list[Attempt], dec_hook=lambda _, seconds: Time(seconds)),
        nobody_listens=one.state == "started" and one.runs == 0,
        run_state=_run_state(one),
        error=one.error or None,
        answer=None if one.deadline is None else one.answer_code or "waiting",
        late=one.responded_at is not None and one.answer_code != "accepted",
        response=None
        if response is None
        else Response(
            status=response.status,
            headers=list(response.headers),
            body=response.body.decode("utf-8", "replace"),
        ),
    )


def run_of(one: Handed) -> LocalRun:
    kind = "replay" if one.delivery_key is None else "answer"
    return shown(LocalRun, one, kind=kind, by=one.owner, ms=one.milliseconds)


def _listener(delivery: recorded.Delivery) -> str | None:
    """Which one it was handed to in the place of the engine."""
    for entry in reversed(delivery.log):
        if "listener" in entry:
            return msgspec.convert(entry["listener"], str)
    return None


def _workflows(delivery: recorded.Delivery) -> list[str] | None:
    """Which ones the newest start that named any has started."""
    for entry in reversed(delivery.log):
        if "workflows" in entry:
            return msgspec.convert(entry["workflows"], list[str])
    return None


def _run_state(delivery: recorded.Delivery) -> RunState | None:
    """None before the start, and where nothing runs."""
    match delivery.state:
        case "completed":
            return "completed"
        case "failed":
            return "failed" if delivery.ended_at is not None else None
        case "lost":
            return "unknown"
        case "started" if delivery.runs:
            # Whoever it was handed to tells its end, or is ended.
            return "running" if delivery.ask_at is not None or _listener(delivery) else "unknown"
        case "queued" | "held" | "started" | "dropped":
            return None


_DECIDED = {"completed": 200, "workflow_failed": 502, "response_timeout": 504}


def _http_status(story: recorded.Story, first: recorded.Delivery | None) -> int | None:
    """What the caller heard. Until that is noted, what was decided to tell it."""
    if story.answered is not None:
        return story.answered.status
    if story.invocation.status or first is None:
        return story.invocation.status or None
    if first.answer_code == "accepted" and first.response is not None:
        return first.response.status
    return _DECIDED.get(first.answer_code)


def _duration(story: recorded.Story, first: recorded.Delivery | None) -> float:
    """Until the answer where that is noted, else until the verdict, which an ordinary answer follows at once."""
    invocation = story.invocation
    at = story.answered.at if story.answered else None
    if at is None and first is not None and first.answer_code == "accepted":
        at = first.responded_at
    return invocation.duration_us / 1000 if at is None else round((at - invocation.received_at) * 1000, 3)
