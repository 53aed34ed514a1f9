"""A call in one line, as lists and the live feed show it."""

from typing import Literal

from postern.core.history import invocation as recorded
from postern.core.history.invocation import Status, status_of
from postern.usecases.answers import UNSET, Time, UnsetType, View, shown

RunState = Literal["running", "completed", "failed", "unknown"]
"""``unknown``: the engine does not tell how runs end, or no longer knows them (status ``lost``)."""


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
    admitted_from: str | None
    """The rejected array of which it is an element. ``httpStatus`` is what that one's caller heard."""
    webhook_name: str | UnsetType | None = UNSET
    """Only in lists, like the next two. Null if the webhook is deleted."""
    event: str | UnsetType = UNSET
    """The sender's name of the event; empty if the call does not say."""
    fields: dict[str, str] | UnsetType = UNSET
    """The mapped values, shortened. If the call started nothing: what the mapping finds now."""
    runs: int | UnsetType | None = UNSET
    nobody_listens: bool | UnsetType = UNSET
    run_state: RunState | UnsetType | None = UNSET
    ended_at: Time | UnsetType | None = UNSET
    error: str | UnsetType | None = UNSET
    workflows: list[str] | UnsetType | None = UNSET

    @property
    def other_values(self) -> list[str]:
        """The mapped values, without one that is the event itself: a line that begins with the event shows it once."""
        return [value for value in (self.fields or {}).values() if value != self.event]


def summary_of(story: recorded.Story) -> InvocationSummary:
    """The status is that of the newest delivery; the caller heard the answer of the first one."""
    invocation, deliveries = story.invocation, story.deliveries
    newest = deliveries[-1] if deliveries else None
    first = deliveries[0] if deliveries and deliveries[0].emission == 1 else None
    return shown(
        InvocationSummary,
        invocation,
        status=status_of(invocation.outcome, newest),
        http_status=_http_status(story, first),
        duration_ms=_duration(story, first),
        matched=invocation.matched or None,
        answered_at=Time(story.answered.at) if story.answered else None,
        caller_gone=story.answered is not None and not story.answered.reached,
        bookmarked=story.bookmark is not None,
        edited_from=story.edited.invocation_id if story.edited and invocation.outcome == "edited" else None,
        admitted_from=story.edited.invocation_id if story.edited and invocation.outcome != "edited" else None,
        runs=newest.runs if newest else UNSET,
        nobody_listens=newest.state == "started" and newest.runs == 0 if newest else UNSET,
        run_state=run_state_of(newest) if newest else UNSET,
        ended_at=Time.maybe(newest.ended_at) if newest else UNSET,
        error=newest.error or None if newest else UNSET,
        workflows=_workflows_of(newest) if newest else UNSET,
    )


def _workflows_of(delivery: recorded.Delivery) -> list[str] | None:
    return next((entry["workflows"] for entry in reversed(delivery.log) if "workflows" in entry), None)


def run_state_of(delivery: recorded.Delivery) -> RunState | None:
    """None before the start, and if nothing runs."""
    match delivery.state:
        case "completed":
            return "completed"
        case "failed":
            return "failed" if delivery.ended_at is not None else None
        case "lost":
            return "unknown"
        case "started" if delivery.runs:
            return "running" if delivery.ask_at is not None else "unknown"
        case "queued" | "held" | "started" | "dropped" | "superseded":
            return None


_DECIDED = {"completed": 200, "workflow_failed": 502, "response_timeout": 504}


def _http_status(story: recorded.Story, first: recorded.Delivery | None) -> int | None:
    """The status that the caller heard; until that is noted, the one that was decided."""
    if story.answered is not None:
        return story.answered.status
    if story.invocation.status or first is None:
        return story.invocation.status or None
    if first.answer_code == "accepted" and first.response is not None:
        return first.response.status
    return _DECIDED.get(first.answer_code)


def _duration(story: recorded.Story, first: recorded.Delivery | None) -> float:
    """Milliseconds until the answer, if that is noted, else until the verdict, which an ordinary answer follows at once."""
    invocation = story.invocation
    at = story.answered.at if story.answered else None
    if at is None and first is not None and first.answer_code == "accepted":
        at = first.responded_at
    return invocation.duration_us / 1000 if at is None else round((at - invocation.received_at) * 1000, 3)
