"""A replay of many invocations."""

from typing import Literal

from msgspec import Struct

from postern.core.history.invocation import HistoryFilter

Values = Literal["current", "recorded"]
"""The four values of a replay: as they were recorded at the call's first start, or as the mapping finds them now."""

ReplayState = Literal["planned", "running", "done", "cancelled"]
"""``done``: all of its deliveries were made. They may not have been started yet."""


class Replay(Struct, frozen=True):
    """A replay of many calls: planned with a count, then run in the background, the oldest call first."""

    id: str
    state: ReplayState
    wanted: HistoryFilter
    total: int
    completed: int
    """How many of the calls had completed when it was planned. ``total`` has them only if ``include_completed``."""
    include_completed: bool
    created_at: float
    created_by: str
    done: int = 0
    skipped: int = 0
    position: str = ""
    """The last invocation that was replayed: a restart goes on after it."""
    started_at: float | None = None
    started_by: str | None = None
    ended_at: float | None = None
    fields: Values = "recorded"
