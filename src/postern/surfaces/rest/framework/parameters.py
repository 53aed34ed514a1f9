"""What many operations are asked with."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from postern.usecases.shapes import Shape

_CURSOR = "^[a-z]{2,4}_[0-9a-f]{32}$"
INVOCATION_ID = "^inv_[0-9a-f]{32}$"


def _is_a_cursor(value: str) -> str:
    if not re.fullmatch(_CURSOR, value):
        raise ValueError("is not a cursor of this list")
    return value


# A page goes on where the last one ended: an id is all that takes, and callers need not know.
Cursor = Annotated[
    Annotated[str, AfterValidator(_is_a_cursor), Field(json_schema_extra={"pattern": _CURSOR})] | None,
    Field(description="nextCursor of the page before."),
]
Limit = Annotated[int, Field(ge=1, le=200, description="How many at most.")]
Text = Annotated[str, Field(max_length=80)]


class OnePage(Shape):
    limit: Limit = 50
    cursor: Cursor = None
