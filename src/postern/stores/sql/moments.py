"""Times in the tables are whole milliseconds since 1970; everywhere else they are seconds."""

from typing import overload


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
