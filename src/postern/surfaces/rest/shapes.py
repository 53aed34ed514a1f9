"""What every answer of the API is made of, as its description shows it. More fields may be added later; none
will go."""

from typing import Generic, TypeVar

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

T = TypeVar("T")


class Told(BaseModel):
    """An answer. A field with a default is left out where it has nothing to say; every other one is always
    there.

    Answers are not made of these shapes: `tests/support/described.py` holds every answer that a test hears
    against them.
    """

    model_config = ConfigDict(alias_generator=to_camel)


class Listing(Told, Generic[T]):
    """Newest first. ``nextCursor`` is null on the last page."""

    items: list[T]
    next_cursor: str | None


class FieldProblem(Told):
    field: str
    message: str


class Problem(Told):
    """RFC 9457. ``code`` is stable; ``detail`` is for people."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    errors: list[FieldProblem] | None = None
