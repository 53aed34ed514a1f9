"""What the history is asked with."""

from typing import Annotated, Literal

from pydantic import Field

from postern.core.deliveries.replay import Values
from postern.core.history.invocation import Status
from postern.surfaces.rest.framework.parameters import Cursor, Limit, Text
from postern.usecases.history.code import Language
from postern.usecases.shapes import Shape

FieldPath = Annotated[
    Annotated[str, Field(max_length=1000)] | None,
    Field(description="A field path, like customer.email or items[0].sku."),
]
Moment = Annotated[
    Annotated[str, Field(max_length=40)] | None,
    Field(description="ISO 8601, or seconds since 1970.", examples=["2026-11-21T09:00:00Z"]),
]


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


class EditedReplayRequest(Shape):
    """``body`` in the place of the recorded one; ``values`` set by hand, by the field's name; the other fields as the mapping
    finds them in the body, or as they were recorded."""

    body: str | None = None
    values: dict[str, str] | None = None
    fields: Values = "current"


class CodeQuery(Shape):
    language: Annotated[Language, Field(description="What it is to be pasted into.")] = "curl"


class VolumeQuery(Shape):
    webhook_id: Text | None = None
    range: Literal["hour", "day", "week", "month"] = "day"
