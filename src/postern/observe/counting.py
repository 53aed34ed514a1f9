"""The metrics where they are counted."""

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prometheus_client import Counter

    from postern.observe.metrics import Numbers


@cache
def numbers() -> "type[Numbers]":
    """They are loaded with the first that is counted: a command counts nothing."""
    from postern.observe.metrics import Numbers

    return Numbers


@cache
def counter_of_starts(engine: str, outcome: str) -> "Counter":
    """Looked up once: to find it by its labels costs more than to count."""
    return numbers().engine_starts.labels(engine, outcome)


@cache
def counter_of_ends(state: str) -> "Counter":
    return numbers().runs_ended.labels(state)
