"""The metrics where they are counted."""

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from postern.observe.metrics import Numbers


@cache
def numbers() -> "type[Numbers]":
    """They are loaded with the first that is counted: a command counts nothing."""
    from postern.observe.metrics import Numbers

    return Numbers
