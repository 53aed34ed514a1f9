"""Invocations over HTTP: the history and the live stream, explanations, replays, bookmarks and notes, and what
workflows report about a call: its answer and their end."""

from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from postern.core.access.accounts import Actor
from postern.core.history.part import looks_into_calls
from postern.core.history.replay import Values
from postern.core.webhooks.settings import FieldMapping
from postern.surfaces.rest.framework.operation import INVOCATION_ID, Cursor, Limit, OnePage, Rows, ShortText
from postern.surfaces.session import actor_of, bearer
from postern.surfaces.streaming import HEADERS, MEDIA_TYPE, Feed
from postern.usecases.answers import Listing, as_json
from postern.usecases.calls import readmission
from postern.usecases.calls.respond import delivery_of_token, report_end, respond
from postern.usecases.calls.views import Answered, EndNoted
from postern.usecases.deliveries import replays, turns
from postern.usecases.deliveries.views import Replay
from postern.usecases.history import comparing, editing, fixtures, history, marks, volumes
from postern.usecases.history.code import Language
from postern.usecases.history.filters import FilterRequest
from postern.usecases.history.live import Stream, follow
from postern.usecases.history.marks import NoteText
from postern.usecases.history.views.calls import Chart, Count, Failures
from postern.usecases.history.views.requests import Preview
from postern.usecases.runtime.gateway import Gateway
from postern.usecases.shapes import WHOLE, Shape
from postern.usecases.signatures import remedies, signatures, subscriptions
from postern.usecases.summary import InvocationSummary
from postern.usecases.webhooks.requests import SettingRequest, request_of

row = Rows("History")


class HistoryQuery(FilterRequest):
    cursor: Cursor = None
    limit: Limit = 50


class ReplayQuery(Shape):
    fields: Values = Field(
        default="recorded",
        description="The four values as they were recorded, or as the mapping finds them now.",
    )


class CompareQuery(Shape):
    to: ShortText | None = Field(
        default=None,
        description="The other call's id; left out, the last call to the same webhook before it that went well.",
    )


class EditedReplayRequest(Shape):
    """``body`` in the place of the recorded one; ``values`` set by hand, by the field's name; the other fields as the mapping
    finds them in the body, or as they were recorded."""

    body: str | None = None
    values: dict[str, str] | None = Field(
        default=None, description='Fields set by hand: {"fieldOne": "1002"}.'
    )
    fields: Values = "current"


class CodeQuery(Shape):
    language: Language = Field(default="curl", description="What it is to be pasted into.")


class VolumeQuery(Shape):
    webhook_id: ShortText | None = None
    range: Literal["hour", "day", "week", "month"] = "day"


class NoteRequest(Shape):
    text: NoteText


def _may_take_long(query: FilterRequest) -> bool:
    return looks_into_calls(query.wanted())


@row("GET", "/invocations", "List invocations", may_take_long=_may_take_long)
async def list_invocations(gateway: Gateway, actor: Actor, query: HistoryQuery) -> Listing[InvocationSummary]:
    return await history.listing(gateway, actor, query.wanted(), query.limit, query.cursor)


@row("GET", "/invocations/count", "Count invocations", may_take_long=_may_take_long)
async def count_invocations(gateway: Gateway, actor: Actor, query: FilterRequest) -> Count:
    """Counts up to 10,000 calls. Where no index helps, as with a text, only the newest ones are looked at."""
    return await history.count(gateway, actor, query.wanted())


@row("GET", "/invocations/failures", "Group failed invocations by error", may_take_long=_may_take_long)
async def list_failures(gateway: Gateway, actor: Actor, query: FilterRequest) -> Failures:
    """Groups the newest 500 failed calls that the filter finds by their error: numbers and ids in it may differ."""
    return await history.failures(gateway, actor, query.wanted())


row.of(history.show, "show_invocation", "GET", "/invocations/{invocation_id}", "Show an invocation")
row.of(
    history.as_code, "show_invocation_as_code", "GET", "/invocations/{invocation_id}/code",
    "Show an invocation as a command or a program", query=CodeQuery, media_type="text/plain; charset=utf-8",
)  # fmt: skip
row.of(
    history.request, "show_request", "GET", "/invocations/{invocation_id}/request",
    "Show a recorded call to the byte",
)  # fmt: skip
row.of(
    fixtures.fixture, "show_fixture", "GET", "/invocations/{invocation_id}/fixture",
    "Show a call as a fixture for tests", refuses=("conflict",),
)  # fmt: skip


@row("GET", "/invocations/{invocation_id}/preview", "Try a field mapping", query=request_of(FieldMapping))
async def preview_mapping(
    gateway: Gateway, actor: Actor, invocation_id: str, query: SettingRequest
) -> Preview:
    """Shows what these field paths take out of the recorded call; null if there is nothing. Nothing is changed."""
    return await history.preview(gateway, actor, invocation_id, query.setting().paths())


row.of(
    history.replay, "replay_invocation", "POST", "/invocations/{invocation_id}/replay", "Replay an invocation",
    query=ReplayQuery, status=202, refuses=("conflict", "version_conflict"), idempotent=True,
)  # fmt: skip
row.of(
    turns.start_now, "start_invocation_now", "POST", "/invocations/{invocation_id}/start-now",
    "Start a call that waits for its turn", refuses=("conflict",),
)  # fmt: skip
row.of(
    editing.replay_edited, "replay_edited_invocation", "POST", "/invocations/{invocation_id}/edited-replays",
    "Replay a changed copy of an invocation", body=EditedReplayRequest, status=202, refuses=("conflict",), idempotent=True,
)  # fmt: skip


row.of(
    comparing.compared, "compare_invocations", "GET", "/invocations/{invocation_id}/comparison",
    "Compare two invocations", query=CompareQuery,
)  # fmt: skip
row.of(
    signatures.explain, "explain_invocation", "GET", "/invocations/{invocation_id}/explanation",
    "Explain a verdict",
)  # fmt: skip


@row("GET", "/volumes", "Count calls over time")
async def show_volumes(gateway: Gateway, actor: Actor, query: VolumeQuery) -> Chart:
    return await volumes.chart(gateway, actor, query.webhook_id or None, query.range)


row.of(
    marks.bookmark, "bookmark_invocation", "PUT", "/invocations/{invocation_id}/bookmark",
    "Bookmark an invocation",
)  # fmt: skip
row.of(
    marks.remove_bookmark, "remove_invocation_bookmark", "DELETE", "/invocations/{invocation_id}/bookmark",
    "Take an invocation's bookmark away", status=204,
)  # fmt: skip
row.of(
    marks.add_note, "note_invocation", "POST", "/invocations/{invocation_id}/notes", "Write a note to an invocation",
    body=NoteRequest, status=201, refuses=("conflict",), idempotent=True,
)  # fmt: skip
row.of(
    marks.delete_note, "delete_invocation_note", "DELETE", "/invocations/{invocation_id}/notes/{note_id}",
    "Delete a note of an invocation", status=204,
)  # fmt: skip


class FixRequest(Shape):
    number: Annotated[int, Field(ge=0, le=100), WHOLE] = Field(
        description="Its place in wouldVerifyIf of the call's explanation; the first is 0."
    )


row.of(
    subscriptions.confirm, "confirm_subscription", "POST", "/invocations/{invocation_id}/confirm-subscription",
    "Confirm a subscription", refuses=("conflict", "temporarily_unavailable"),
)  # fmt: skip
row.of(
    remedies.apply, "apply_fix", "POST", "/invocations/{invocation_id}/fix",
    "Change the webhook so that calls like this one verify", body=FixRequest, versioned=True, refuses=("conflict",),
)  # fmt: skip


class ResponseAction(Shape):
    """The answer for the waiting caller. Other people's workflows send it; unknown fields are ignored."""

    model_config = ConfigDict(extra="ignore")

    status: int | None = Field(None, ge=200, le=599)
    headers: dict[str, str] | None = None
    body: Any = None


class RunsEnded(Shape):
    """The end of a call's workflow. Other people's workflows send it; unknown fields are ignored."""

    model_config = ConfigDict(extra="ignore")

    state: Literal["completed", "failed"]
    error: str | None = Field(None, max_length=20_000, description="Why it failed, in words.")


class AdmitRequest(Shape):
    invocation_ids: list[str] = Field(min_length=1, max_length=1000)


row.of(
    readmission.admit, "admit_invocations", "POST", "/readmissions", "Admit rejected calls that pass now",
    body=AdmitRequest, refuses=("not_found",),
)  # fmt: skip


async def _holds_response_token(gateway: Gateway, request: Request) -> None:
    await delivery_of_token(gateway, request.path_params["invocation_id"], bearer(request))


@row(
    "POST", "/invocations/{invocation_id}/response", "Answer the waiting caller",
    level=None, refuses=("not_authenticated", "gone"), security=[{"responseToken": []}], check=_holds_response_token,
)  # fmt: skip
async def answer_invocation(
    gateway: Gateway, request: Request, invocation_id: str, body: ResponseAction
) -> Answered:
    """The response action sends its answer here. The first answer that comes in time wins."""
    await respond(
        gateway, invocation_id, bearer(request), status=body.status, headers=body.headers, body=body.body
    )
    return Answered(status="answered")


@row(
    "POST", "/invocations/{invocation_id}/end", "Say how a workflow ended",
    level=None, refuses=("not_authenticated",), security=[{"responseToken": []}], check=_holds_response_token,
)  # fmt: skip
async def end_invocation(gateway: Gateway, request: Request, invocation_id: str, body: RunsEnded) -> EndNoted:
    """Engines that are started over HTTP, and not asked how runs end, report it here. The first report counts."""
    await report_end(gateway, invocation_id, bearer(request), body.state, body.error or "")
    return EndNoted(status="noted")


class ReplayFilter(FilterRequest):
    """A filter of invocations: every part that is given must hold. Only calls that were accepted, or admitted
    later, can be replayed; the others are skipped."""


class ReplayRequest(Shape):
    filter: ReplayFilter
    include_completed: bool = Field(
        default=False, description="Also calls whose workflow has completed. They are left out otherwise."
    )


@row("POST", "/replays", "Plan a replay of many", status=201, place="replays", idempotent=True)
async def plan_replay(gateway: Gateway, actor: Actor, body: ReplayRequest) -> Replay:
    """Counts what the filter finds; nothing is started yet. Calls that come or fail later are not part of
    it, and completed ones only with `includeCompleted`."""
    return await replays.plan(gateway, actor, body.filter.wanted("filter."), body.include_completed)


row.of(replays.listing, "list_replays", "GET", "/replays", "List replays", query=OnePage)
row.of(replays.show, "show_replay", "GET", "/replays/{replay_id}", "Show a replay's progress")
row.of(
    replays.begin, "run_replay", "POST", "/replays/{replay_id}/run", "Run a planned replay",
    query=ReplayQuery, status=202, refuses=("conflict",),
)  # fmt: skip
row.of(
    replays.cancel, "cancel_replay", "POST", "/replays/{replay_id}/cancel", "Cancel a replay",
    refuses=("conflict",),
)  # fmt: skip


class LiveQuery(Shape):
    webhook_id: ShortText | None = None
    after: Annotated[str, Field(pattern=INVOCATION_ID)] | None = Field(
        default=None, description="Go on from this invocation, as Last-Event-ID does."
    )


@row(
    "GET", "/live", "Follow invocations",
    answers=str, media_type="text/event-stream", refuses=("rate_limited",),
)  # fmt: skip
async def follow_invocations(
    gateway: Gateway, request: Request, actor: Actor, query: LiveQuery, last_event_id: str | None
) -> Response:
    """Server-sent events: `invocation` when one is recorded, rejected calls too, and `delivery` when its
    deliveries move.

    Each carries the invocation's summary as it is now. After a break an event may come again.
    """
    if request.scope.get("head"):
        return Response(headers=HEADERS, media_type=MEDIA_TYPE)
    after = last_event_id or query.after
    stream = await follow(gateway, actor, lambda: actor_of(gateway, request), query.webhook_id or None, after)
    return Feed(stream, _lines(stream))


async def _lines(stream: Stream) -> AsyncIterator[bytes]:
    newest = ""
    yield b"retry: 1000\n: live\n\n"
    async for event in stream.events():
        if event is None:
            yield b": still here\n\n"
            continue
        # An older invocation that moves must not set the place to resume from back.
        place = f"id: {event.invocation_id}\n".encode() if event.invocation_id > newest else b""
        newest = max(newest, event.invocation_id)
        yield place + f"event: {event.name}\ndata: ".encode() + as_json(event.summary) + b"\n\n"
