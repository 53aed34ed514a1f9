"""The answers of use cases, and how they are written as JSON.

The answers of each topic are in its ``views.py``. REST, MCP and ``--json`` write them as they are, and describe them by
the same types.
"""

from collections.abc import Callable, Iterable
from datetime import datetime
from functools import cache
from typing import Any, Generic, TypeVar, get_type_hints

import msgspec
from msgspec import UNSET as UNSET
from msgspec import UnsetType as UnsetType

from postern.core.moment import Time as Time
from postern.core.moment import iso as iso

T = TypeVar("T")
V = TypeVar("V", bound=msgspec.Struct)

MOST_ON_A_PAGE = 200

Schema = dict[str, Any]
"""A JSON Schema, or the components that schemas refer to."""


class View(msgspec.Struct, rename="camel"):
    """An answer, or a part of one. A field that can be ``UNSET`` is left out if it has nothing to say; every other field is
    always there. Fields may be added later, but not removed."""


class Listing(View, Generic[T]):
    """Newest first. ``nextCursor`` is null on the last page."""

    items: list[T]
    next_cursor: str | None


@cache
def _is_time(kind: Any) -> dict[str, bool]:
    """By field, whether it is a time."""
    return {name: hint in (Time, Time | None) for name, hint in get_type_hints(kind).items()}


def shown(kind: type[V], stored: object, /, **given: object) -> V:
    """An answer made of what is stored under the names of its fields, and of what is ``given``."""
    names = [name for name in kind.__struct_fields__ if name not in given]
    is_time = _is_time(kind)
    values = {name: getattr(stored, name) for name in names if hasattr(stored, name)}
    return kind(
        **{name: Time.maybe(value) if is_time[name] else value for name, value in values.items()}, **given
    )


def whole(items: Iterable[T]) -> Listing[T]:
    """A list that fits on one page."""
    return Listing(items=list(items), next_cursor=None)


def page_size(requested: int) -> int:
    """The number that was asked for, within the bounds of a page."""
    return max(1, min(requested, MOST_ON_A_PAGE))


def first_page(rows: list[T], limit: int, id_of: Callable[[T], str]) -> tuple[list[T], str | None]:
    """``found`` has one more than the limit. Returns the page, and where the next one goes on."""
    return rows[:limit], id_of(rows[limit - 1]) if len(rows) > limit else None


def as_json(answer: object) -> bytes:
    return _encoder.encode(answer)


def read_json(text: bytes, kind: type[T]) -> T:
    """Reads an answer that ``as_json`` has written."""
    return msgspec.json.decode(text, type=kind, dec_hook=_value)


def as_plain(answer: object) -> Any:
    """The answer as dictionaries and lists."""
    return msgspec.json.decode(as_json(answer))


def schemas(types: Iterable[Any], ref_template: str) -> tuple[list[Schema], Schema]:
    """A JSON Schema of each type, and the components that they refer to."""
    roots, components = msgspec.json.schema_components(types, schema_hook=_schema, ref_template=ref_template)
    for component in components.values():
        # Settings in answers are always there, and more may be added beside them.
        component.pop("additionalProperties", None)
        if "description" in component:
            component["description"] = " ".join(component["description"].split())
        for name, field in component.get("properties", {}).items():
            if "default" in field:
                del field["default"]
                component["required"].append(name)
    return list(roots), components


def _text(value: object) -> str:
    if isinstance(value, Time):
        return iso(value)
    raise NotImplementedError(f"{type(value).__name__} is no part of an answer")


def _value(kind: type, text: Any) -> Any:
    if kind is Time and isinstance(text, str):
        return Time(datetime.fromisoformat(text).timestamp())
    raise NotImplementedError(f"{kind.__name__} is no part of an answer")


def _schema(kind: type) -> Schema:
    if kind is Time:
        return {"type": "string"}
    raise NotImplementedError(f"{kind.__name__} is no part of an answer")


_encoder = msgspec.json.Encoder(enc_hook=_text)
