"""Invocations over HTTP: what was called, why it was judged so, replaying one, and what people put beside it."""

from typing import Annotated, Literal

from pydantic import Field

from postern.core.access.accounts import Actor
from postern.core.history.part import looks_into_calls
from postern.core.history.replay import Values
from postern.core.webhooks.settings import FieldMapping
from postern.surfaces.rest.framework.operation import Cursor, Limit, Rows, Text
from postern.usecases.answers import Listing
from postern.usecases.history import comparing, editing, fixtures, history, marks, volumes
from postern.usecases.history.code import Language
from postern.usecases.history.filters import FilterRequest
from postern.usecases.history.marks import NoteText
from postern.usecases.history.views.calls import Count
from postern.usecases.history.views.charts import Chart
from postern.usecases.history.views.samples import Preview
from postern.usecases.runtime.gateway import Gateway
from postern.usecases.shapes import Shape
from postern.usecases.signatures import signatures
from postern.usecases.summary import InvocationSummary
from postern.usecases.webhooks.requests import SettingRequest, request_of

row = Rows("History")


class HistoryQuery(FilterRequest):
    cursor: Cursor = None
    limit: Limit = 50


class ReplayQuery(Shape):
    fields: Annotated[
        Values, Field(description="The four values as they were recorded, or as the mapping finds them now.")
    ] = "recorded"


class CompareQuery(Shape):
    to: Annotated[
        Text | None,
        Field(
            description="The other call's id; left out, the last call to the same webhook before it that went well."
        ),
    ] = None


class EditedReplayRequest(Shape):
    """``body`` in the place of the recorded one; ``values`` set by hand, by the field's name; the other fields as the mapping
    finds them in the body, or as they were recorded."""

    body: str | None = None
    values: Annotated[
        dict[str, str] | None, Field(description='Fields set by hand: {"fieldOne": "1002"}.')
    ] = None
    fields: Values = "current"


class CodeQuery(Shape):
    language: Annotated[Language, Field(description="What it is to be pasted into.")] = "curl"


class VolumeQuery(Shape):
    webhook_id: Text | None = None
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
    """Up to 10,000. Where no index helps, as with a text, among the newest ones."""
    return await history.count(gateway, actor, query.wanted())


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
    """What these field paths would take out of the recorded call; null where there is nothing. Nothing is
    changed."""
    return await history.preview(gateway, actor, invocation_id, query.setting().paths())


row.of(
    history.replay, "replay_invocation", "POST", "/invocations/{invocation_id}/replay", "Replay an invocation",
    query=ReplayQuery, status=202, refuses=("conflict",), idempotent=True,
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
