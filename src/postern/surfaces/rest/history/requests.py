"""What the history is asked with."""

from typing import Annotated, Literal

from pydantic import Field

from postern.core.deliveries.delivery import FIELD_NAMES
from postern.core.deliveries.replay import Values
from postern.surfaces.rest.framework.parameters import Cursor, Limit, Text
from postern.usecases.history.code import Language
from postern.usecases.history.filters import FilterRequest
from postern.usecases.shapes import Shape

FieldPath = Annotated[
    Annotated[str, Field(max_length=1000)] | None,
    Field(description="A field path, like customer.email or items[0].sku."),
]


class HistoryQuery(FilterRequest):
    cursor: Cursor = None
    limit: Limit = 50


class PreviewQuery(Shape):
    field_one: FieldPath = None
    field_two: FieldPath = None
    field_three: FieldPath = None
    field_four: FieldPath = None

    def paths(self) -> dict[str, str]:
        given = (self.field_one, self.field_two, self.field_three, self.field_four)
        return {name: path for name, path in zip(FIELD_NAMES, given, strict=True) if path}


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
