"""Every answer of the API against its description: it tells nothing that is not described, and leaves out
nothing that is."""

from collections.abc import Iterator
from functools import cache
from typing import Any

from pydantic import BaseModel, TypeAdapter
from starlette.routing import Match

from postern.surfaces.rest.app import make_api
from postern.surfaces.rest.shapes import Problem
from postern.surfaces.rest.table import PREFIX, Operation

PROBLEM: TypeAdapter[Any] = TypeAdapter(Problem)


@cache
def operations() -> list[tuple[Operation, dict[int | str, TypeAdapter[Any]]]]:
    """Each with the shapes of its answers, by their status."""
    found = [route for route in make_api(None).routes if isinstance(route, Operation)]  # type: ignore[arg-type]
    return [
        (
            one,
            {
                status: TypeAdapter(answer["model"])
                for status, answer in one.responses.items()
                if "model" in answer
            },
        )
        for one in found
    ]


def operation_of(method: str, path: str) -> tuple[Operation, dict[int | str, TypeAdapter[Any]]] | None:
    scope = {"type": "http", "method": method, "path": path.partition("?")[0]}
    return next((found for found in operations() if found[0].matches(scope)[0] is Match.FULL), None)


def as_described(method: str, path: str, status: int, text: str) -> Any:
    """The answer as its shape; raises pydantic's ``ValidationError`` where it has another one. None where
    none is described."""
    found = operation_of(method, path) if path.startswith(PREFIX) else None
    if found is None or not text:
        return None
    shape = PROBLEM if status >= 400 else found[1].get(status)
    return shape and shape.validate_json(text, strict=True, extra="forbid")


def fields_told(answer: Any) -> Iterator[tuple[type[BaseModel], str]]:
    """Which fields of which shapes are in an answer, all the way down."""
    if isinstance(answer, BaseModel):
        for name in answer.model_fields_set:
            yield type(answer), name
            yield from fields_told(getattr(answer, name))
    elif isinstance(answer, list):
        for one in answer:
            yield from fields_told(one)
