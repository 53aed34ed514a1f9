"""Every answer of the API against its description: it tells nothing that is not described, and leaves out
nothing that is."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec
from starlette.routing import compile_path

from postern.surfaces.rest.framework.document import answer_types
from postern.surfaces.rest.framework.operation import PREFIX, Operation
from postern.surfaces.rest.framework.problems import Problem
from postern.surfaces.rest.table import operations
from postern.usecases.answers import UNSET, Time, as_plain

PATHS = [(one, compile_path(one.path)[0]) for one in operations()]


class NotAsDescribed(AssertionError):
    pass


def operation_of(method: str, path: str) -> Operation | None:
    path = path.partition("?")[0]
    return next((one for one, form in PATHS if one.method == method and form.match(path)), None)


def as_described(method: str, path: str, status: int, text: str) -> Any:
    """The answer as its type; raises ``NotAsDescribed`` where it is another one. None where none is
    described."""
    found = operation_of(method, path) if path.startswith(PREFIX) else None
    if found is None or not text:
        return None
    kinds = (Problem,) if status >= 400 else answer_types(found) if status == found.status else ()
    wrong = []
    for kind in kinds:
        try:
            answer = msgspec.json.decode(text, type=kind, dec_hook=_time)
        except msgspec.ValidationError as error:
            wrong.append(f"{kind}: {error}")
            continue
        decoded, meant = msgspec.json.decode(text), as_plain(answer)
        if decoded == meant:
            return answer
        wrong.append(f"{kind}: {decoded} is not {meant}")
    if wrong:
        raise NotAsDescribed("\n".join(wrong))
    return None


def _time(kind: type, text: Any) -> Any:
    assert kind is Time
    return Time(datetime.fromisoformat(text).timestamp())


def fields_in(answer: Any) -> Iterator[str]:
    """Which fields of which types an answer fills, all the way down: ``Webhook.schedule``."""
    if isinstance(answer, msgspec.Struct):
        for field in msgspec.structs.fields(answer):
            value = getattr(answer, field.name)
            if value is not UNSET:
                yield f"{type(answer).__name__}.{field.name}"
                yield from fields_in(value)
    elif isinstance(answer, list | tuple):
        for one in answer:
            yield from fields_in(one)


def fields_described() -> Iterator[tuple[str, bool]]:
    """Every field of every answer, and whether it may be left out."""
    seen: set[Any] = set()
    waiting: list[Any] = [Problem, *(kind for one in operations() for kind in answer_types(one))]
    for kind in msgspec.inspect.multi_type_info(waiting):
        yield from _fields(kind, seen)


def _fields(kind: msgspec.inspect.Type, seen: set[Any]) -> Iterator[tuple[str, bool]]:
    match kind:
        case msgspec.inspect.StructType(cls=cls, fields=fields) if cls not in seen:
            seen.add(cls)
            for field in fields:
                yield f"{cls.__name__}.{field.name}", field.default is UNSET
                yield from _fields(field.type, seen)
        case msgspec.inspect.UnionType(types=types):
            for one in types:
                yield from _fields(one, seen)
        case msgspec.inspect.ListType(item_type=item):
            yield from _fields(item, seen)
        case _:
            pass
