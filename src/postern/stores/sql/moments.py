"""Rows and values. Times in the tables are whole milliseconds since 1970; everywhere else they are seconds."""

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar, get_type_hints, overload

from sqlalchemy import Connection, Executable, Row

from postern.core.moment import Time

T = TypeVar("T")


def milliseconds(moment: float) -> int:
    return int(moment * 1000)


def stored(moment: float) -> int:
    """The milliseconds that this moment was read from, to be compared with what stands there. ``milliseconds`` cuts off what
    is less than one: of some moments, as of many in 2038, it would make one less."""
    return round(moment * 1000)


@overload
def seconds(moment: int) -> float: ...
@overload
def seconds(moment: None) -> None: ...
def seconds(moment: int | None) -> float | None:
    return None if moment is None else moment / 1000


@cache
def _times(kind: Any) -> dict[str, type[float] | None]:
    """By the names of fields, what a time is read as: whatever is a float is one."""
    made = {float: float, float | None: float, Time: Time, Time | None: Time}
    return {name: made.get(hint) for name, hint in get_type_hints(kind).items()}


def value_of(kind: Callable[..., T], row: Row[Any], /, **given: object) -> T:
    """Makes a value from the columns that have the names of its fields, and from ``given``."""
    times, read = _times(kind), {}
    for name, value in zip(row._fields, row, strict=True):
        if name in times:
            time = times[name]
            read[name] = value if time is None or value is None else time(seconds(value))
    return kind(**{**read, **given})


def all_of(kind: Callable[..., T], connection: Connection, statement: Executable) -> list[T]:
    return [value_of(kind, row) for row in connection.execute(statement)]


def first_of(kind: Callable[..., T], connection: Connection, statement: Executable) -> T | None:
    row = connection.execute(statement).first()
    return None if row is None else value_of(kind, row)


def row_of(value: Any, /, **given: object) -> dict[str, Any]:
    """The same for an insert."""
    row = {
        name: milliseconds(member) if time and member is not None else member
        for name, time in _times(value.__class__).items()
        for member in (getattr(value, name),)
    }
    return {**row, **given}
