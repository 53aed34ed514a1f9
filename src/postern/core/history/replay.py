"""A replay of many invocations."""

from typing import Literal

from msgspec import Struct

from postern.core.history.invocation import HistoryFilter

Values = Literal["current", "recorded"]
"""Which four values a replay carries: as they were recorded when the call was first started, which is what the replay of a
trigger means, or as the mapping finds them now."""


ReplayState = Literal["planned", "running", "done", "cancelled"]
"""``done``: all of its deliveries were made. What becomes of them is theirs."""


class Replay(Struct, frozen=True):
    """A replay of many: planned with a count, then run in the background, the oldest call first."""

    id: str
    state: ReplayState
    wanted: HistoryFilter
    count: int
    completed: int
    """Of the calls that the filter finds, how many had completed when it was planned: ``count`` has them only where
    ``include_completed``."""
    include_completed: bool
    created_at: float
    created_by: str
    done: int = 0
    skipped: int = 0
    position: str = ""
    """Replayed up to and including this invocation: where a restart goes on."""
    started_at: float | None = None
    started_by: str | None = None
    ended_at: float | None = None
    fields: Values = "recorded"
