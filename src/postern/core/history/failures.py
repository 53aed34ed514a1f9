"""Groups calls that failed alike: with the same error, except for numbers and ids in it."""

import re
from collections.abc import Iterable

from msgspec import Struct, field

ANYTHING = "…"
_CHANGING = re.compile(r"\d+\.\d+|(?=[\w-]*\d)[\w-]{4,}")
"""Numbers of four digits or more, fractions and ids. Shorter ones, like the status 503, tell errors apart."""


def alike(error: str) -> str:
    """The error with ``…`` in the place of what differs from call to call."""
    return _CHANGING.sub(ANYTHING, error)


class FailureGroup(Struct):
    """``count`` calls that failed alike, among the newest that failed."""

    error: str
    since: float
    count: int = 0
    webhook_ids: dict[str, None] = field(default_factory=dict)


def groups_of(failed: Iterable[tuple[str, str, float]]) -> list[FailureGroup]:
    """``failed``: the webhook, the error and the time of each call, newest first. One call alone is no group."""
    groups: dict[str, FailureGroup] = {}
    for webhook_id, error, at in failed:
        group = groups.setdefault(alike(error), FailureGroup(alike(error), at))
        group.count += 1
        group.since = at
        group.webhook_ids[webhook_id] = None
    return sorted(
        (failure for failure in groups.values() if failure.count > 1), key=lambda failure: -failure.count
    )
