"""Calls whose runs failed alike: the same error but for the numbers and ids in it."""

import re
from collections.abc import Iterable

from msgspec import Struct, field

ANYTHING = "…"
_CHANGING = re.compile(r"\d+\.\d+|(?=[\w-]*\d)[\w-]{4,}")
"""A number of four digits and more, a fraction, an id. What is shorter, a status like 503, tells one error from another."""


def alike(error: str) -> str:
    """The error with ``…`` for what differs from call to call."""
    return _CHANGING.sub(ANYTHING, error)


class FailureGroup(Struct):
    """``count`` calls that failed alike, among the newest that failed."""

    error: str
    since: float
    count: int = 0
    webhook_ids: dict[str, None] = field(default_factory=dict)


def groups_of(failed: Iterable[tuple[str, str, float]]) -> list[FailureGroup]:
    """Of each call its webhook, its error and when it came, newest first. One that failed alone is no group."""
    groups: dict[str, FailureGroup] = {}
    for webhook_id, error, at in failed:
        group = groups.setdefault(alike(error), FailureGroup(alike(error), at))
        group.count += 1
        group.since = at
        group.webhook_ids[webhook_id] = None
    return sorted((one for one in groups.values() if one.count > 1), key=lambda one: -one.count)
