"""Times in the tables are whole milliseconds since 1970; everywhere else they are seconds."""

from typing import overload


def milliseconds(moment: float) -> int:
    return int(moment * 1000)


@overload
def seconds(moment: int) -> float: ...
@overload
def seconds(moment: None) -> None: ...
def seconds(moment: int | None) -> float | None:
    return None if moment is None else moment / 1000
