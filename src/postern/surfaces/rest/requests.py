"""What the API is asked with, besides what use cases take as it comes."""

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field

from postern.core.access.accounts import Level
from postern.core.deliveries.replay import Values
from postern.core.history.invocation import Status
from postern.core.webhooks.listing import Sort
from postern.usecases.history.code import Language
from postern.usecases.history.payload_types import CALLS, MOST_CALLS
from postern.usecases.shapes import Shape
from postern.usecases.webhooks.listing import FilterRequest

_CURSOR = "^[a-z]{2,4}_[0-9a-f]{32}$"
INVOCATION_ID = "^inv_[0-9a-f]{32}$"


def _is_a_cursor(value: str) -> str:
    if not re.fullmatch(_CURSOR, value):
        raise ValueError("is not a cursor of this list")
    return value


def _is_an_invocation(value: str) -> str:
    if not re.fullmatch(INVOCATION_ID, value):
        raise ValueError("is not a cursor of this list")
    return value


# A page goes on where the last one ended: an id is all that takes, and callers need not know.
Cursor = Annotated[
    Annotated[str, AfterValidator(_is_a_cursor), Field(json_schema_extra={"pattern": _CURSOR})] | None,
    Field(description="nextCursor of the page before."),
]
Limit = Annotated[int, Field(ge=1, le=200, description="How many at most.")]
Text = Annotated[str, Field(max_length=80)]
FieldPath = Annotated[
    Annotated[str, Field(max_length=1000)] | None,
    Field(description="A field path, like customer.email or items[0].sku."),
]
Moment = Annotated[
    Annotated[str, Field(max_length=40)] | None,
    Field(description="ISO 8601, or seconds since 1970.", examples=["2026-11-21T09:00:00Z"]),
]


class OnePage(Shape):
    limit: Limit = 50
    cursor: Cursor = None


class WebhookQuery(OnePage, FilterRequest):
    sort: Annotated[
        Sort,
        Field(
            description="created: the newest first; failing: those with most trouble; name, folder: A to Z; last_call: the "
            "last called; last_day: those with most calls in the last 24 hours."
        ),
    ] = "created"
    reverse: Annotated[bool, Field(description="The other way round.")] = False


class BinQuery(OnePage):
    limit: Limit = 200


class RecordQuery(Shape):
    seconds: Annotated[float, Field(ge=1, le=86_400, description="How long to wait for it.")] = 600


class PayloadTypesQuery(Shape):
    calls: Annotated[
        int, Field(ge=1, le=MOST_CALLS, description="How many of the newest recorded calls are read at most.")
    ] = CALLS


class NewWorkflowQuery(Shape):
    name: Annotated[str, Field(min_length=1, max_length=80, description="What to call it.")]


class FilterQuery(Shape):
    webhook_id: Text | None = None
    status: Status | None = None
    code: Text | None = None
    since: Moment = None
    until: Moment = None
    search: Annotated[
        Annotated[str, Field(max_length=200)] | None,
        Field(description="Text in the body, the headers or the query."),
    ] = None
    answer: Annotated[
        Annotated[str, Field(max_length=4)] | None,
        Field(description="What the caller heard: a status like 504, all of a kind like 5xx, or gone."),
    ] = None
    value: Annotated[
        Annotated[str, Field(max_length=200)] | None,
        Field(
            description="A whole mapped value or event name, in capitals or not; with a * at its end, its beginning. Found some seconds after the call."
        ),
    ] = None
    address: Annotated[
        Text | None, Field(description="The sender's address. Found some seconds after the call.")
    ] = None
    bookmarked: Annotated[bool, Field(description="Only calls that somebody has bookmarked.")] = False
    header: Annotated[
        Annotated[str, Field(max_length=300)] | None,
        Field(description="A header's name, name=value, or name=beginning*. The calls are gone through."),
    ] = None
    field: Annotated[
        Annotated[str, Field(max_length=300)] | None,
        Field(
            description="A mapped value (fieldOne=1001), or a value at a path of the payload (customer.id=7), for which the calls are gone "
            "through; with a * at its end, its beginning."
        ),
    ] = None


class HistoryQuery(FilterQuery):
    cursor: Cursor = None
    limit: Limit = 50


class PreviewQuery(Shape):
    field_one: FieldPath = None
    field_two: FieldPath = None
    field_three: FieldPath = None
    field_four: FieldPath = None


class ReplayQuery(Shape):
    fields: Annotated[
        Values, Field(description="The four values as the mapping finds them now, or as they were recorded.")
    ] = "current"


class CompareQuery(Shape):
    to: Annotated[
        Text | None,
        Field(
            description="The other call's id; left out, the last call to the same webhook before it that went well."
        ),
    ] = None


class NoteRequest(Shape):
    text: str = Field(max_length=4000)


class EditedReplayRequest(Shape):
    """``body`` in the place of the recorded one; ``values`` set by hand, by the field's name; the other fields as the mapping
    finds them in the body, or as they were recorded."""

    body: str | None = None
    values: dict[str, str] | None = None
    fields: Values = "current"


class CodeQuery(Shape):
    language: Annotated[Language, Field(description="What it is to be pasted into.")] = "curl"


class LiveQuery(Shape):
    webhook_id: Text | None = None
    after: Annotated[
        Annotated[str, AfterValidator(_is_an_invocation), Field(json_schema_extra={"pattern": INVOCATION_ID})]
        | None,
        Field(description="Go on from this invocation, as Last-Event-ID does."),
    ] = None


class VolumeQuery(Shape):
    webhook_id: Text | None = None
    range: Literal["hour", "day", "week", "month"] = "day"


class RunsQuery(Shape):
    limit: Limit = 50
    delivery_key: Annotated[Text | None, Field(description="Only the runs of one delivery.")] = None


class ProposalQuery(Shape):
    description: Annotated[
        Annotated[str, Field(max_length=200)] | None, Field(description="What the sender is called.")
    ] = None
    invocation_id: Annotated[Text | None, Field(description="A recorded call of it.")] = None


class AuditQuery(OnePage):
    subject: Annotated[Text | None, Field(description="The id of what was changed.")] = None


class ReplayFilter(Shape):
    """Which invocations: every part that is given must hold. Only calls that were accepted, or admitted
    later, can be replayed; the others are skipped."""

    webhook_id: str | None = Field(None, max_length=80)
    status: Status | None = None
    code: str | None = Field(None, max_length=40)
    since: str | None = Field(None, max_length=40)
    until: str | None = Field(None, max_length=40)
    search: str | None = Field(None, max_length=200)
    answer: str | None = Field(None, max_length=4)
    value: str | None = Field(None, max_length=200)
    address: str | None = Field(None, max_length=80)
    bookmarked: bool = False
    header: str | None = Field(None, max_length=300)
    field: str | None = Field(None, max_length=300, description="A mapped one, like fieldOne=1001.")


class ReplayRequest(Shape):
    filter: ReplayFilter


class ResponseAction(Shape):
    """What the waiting caller is to hear. Sent by other people's workflows: what else they say is passed
    over."""

    model_config = ConfigDict(extra="ignore")

    status: int | None = Field(None, ge=200, le=599)
    headers: dict[str, str] | None = None
    body: Any = None


class RunsEnded(Shape):
    """How the workflow of this call ended. Sent by other people's workflows: what else they say is passed over."""

    model_config = ConfigDict(extra="ignore")

    state: Literal["completed", "failed"]
    error: str | None = Field(None, max_length=20_000, description="Why it failed, in words.")


class AdmitRequest(Shape):
    invocation_ids: list[str] = Field(min_length=1, max_length=1000)


class ReferencedSecret(Shape):
    """What `{env: NAME}` or `{file: PATH}` in a document stands for."""

    kind: Literal["env", "file"]
    name: str = Field(min_length=1, max_length=4096)
    value: str = Field(min_length=1, max_length=65_536, repr=False)


class ApplyRequest(Shape):
    """``document`` as `GET /configuration` answers it."""

    document: Any
    secrets: list[ReferencedSecret] = Field([], max_length=100_000, repr=False)
    prune: Annotated[bool, Field(description="Delete the webhooks that the document does not name.")] = False
    dry_run: Annotated[bool, Field(description="Only say what would be changed.")] = False


class ApiKeyRequest(Shape):
    name: str = Field(min_length=1, max_length=200)
    level: Level


class UserRequest(Shape):
    name: str = Field(min_length=1, max_length=80)
    password: str = Field(min_length=8, max_length=256, repr=False)
    level: Level


class UserChange(Shape):
    level: Level | None = None
    password: str | None = Field(None, min_length=8, max_length=256, repr=False)


class SignIn(Shape):
    name: str = Field(max_length=200)
    password: str = Field(max_length=1024, repr=False)


class PasswordChange(Shape):
    old_password: str = Field(max_length=1024, repr=False)
    new_password: str = Field(min_length=8, max_length=256, repr=False)
