"""Whatever is wrong in a request is said in our words: Pydantic's are about Python, input and regular expressions."""

from collections.abc import Callable, Iterator
from typing import Any, get_args

import pytest
from pydantic import TypeAdapter, ValidationError

from postern.surfaces.rest import table
from postern.usecases import shapes as shapes_of_requests
from postern.usecases.shapes import Shape, field_errors

WRONG: list[Any] = [
    None, True, -1, 5, 1.5, 1e308, 10**30, "", "x", "y" * 100_000, "\ud800", [], [None], ["z"] * 2_000, {}, {"a": 1},
]  # fmt: skip
DEEPEST = 4

Inside = Callable[[Any], Any]
"""Puts a value into its place in a request."""


def shapes(kind: Any) -> list[type[Shape]]:
    if isinstance(kind, type) and issubclass(kind, Shape):
        return [kind]
    return [shape for part in get_args(kind) for shape in shapes(part)]


def places(kind: Any, inside: Inside, depth: int = 0) -> Iterator[Inside]:
    yield inside
    for shape in shapes(kind) if depth < DEEPEST else ():
        method = shape.model_fields.get("method")
        chosen = {"method": get_args(method.annotation)[0]} if method and get_args(method.annotation) else {}
        for field in shape.model_fields.values():
            name = str(field.alias)

            def within(value: Any, name: str = name, chosen: dict[str, str] = chosen) -> Any:
                return inside({**chosen, name: value})

            yield from places(field.annotation, within, depth + 1)


REQUESTS = [
    pytest.param(kind, id=f"{operation.id}-{part}")
    for operation in table.operations()
    for part, kind in (("body", operation.body), ("query", operation.query))
    if kind is not None
]


@pytest.mark.parametrize("kind", REQUESTS)
def test_a_value_of_a_wrong_type_is_refused_in_our_words(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    in_words = shapes_of_requests._in_words

    def noted(error: Any) -> str:
        ours = in_words(error)
        if ours.lower() == error["msg"].lower():
            said.append(f"{error['type']}: {ours}")
        return ours

    monkeypatch.setattr(shapes_of_requests, "_in_words", noted)
    takes = TypeAdapter(kind)
    for inside in places(kind, lambda value: value):
        for value in WRONG:
            try:
                takes.validate_python(inside(value), strict=True)
            except ValidationError as error:
                assert field_errors(error, kind)
    assert said == []
