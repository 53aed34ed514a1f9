"""Answers about holds and replays of many."""

from collections.abc import Mapping

from postern.core.history.invocation import HistoryFilter
from postern.core.history.replay import Replay as StoredReplay
from postern.core.history.replay import ReplayState, Values
from postern.usecases.answers import UNSET, Time, UnsetType, View, shown
from postern.usecases.summary import InvocationSummary


class ReplayedCalls(HistoryFilter, frozen=True, rename="camel"):
    webhook_id: str | None = None  # only fields that are stated here are named in camel case
    since: Time | None = None
    until: Time | None = None


class ReplayOutcomes(View):
    """How many of a replay's deliveries that are still kept are in each state."""

    queued: int = 0
    held: int = 0
    started: int = 0
    completed: int = 0
    failed: int = 0
    lost: int = 0
    dropped: int = 0
    superseded: int = 0

    def __str__(self) -> str:
        words = ("completed", "failed", "started", "lost", "queued", "held", "dropped", "superseded")
        counted = [(getattr(self, word), "waiting" if word == "queued" else word) for word in words]
        return ", ".join(f"{count:,} {word}" for count, word in counted if count)


class Replay(View):
    """``done`` of ``count`` calls were replayed, and ``outcomes`` says what became of them. ``completed``: how many of the
    calls that the filter finds had completed before; ``count`` has them only with ``include_completed``. ``fields``: the
    four values as they were recorded, or as the mapping finds them now; whoever runs it chooses. ``created_by`` planned
    it, ``started_by`` had it run: each of its deliveries names them as ``asked_by``."""

    id: str
    state: ReplayState
    filter: ReplayedCalls
    fields: Values
    count: int
    completed: int
    include_completed: bool
    done: int
    skipped: int
    outcomes: ReplayOutcomes
    created_at: Time
    created_by: str
    started_at: Time | None
    started_by: str | None
    ended_at: Time | None
    first: list[InvocationSummary] | UnsetType = UNSET
    """The calls that a plan would begin with, five at most."""


class Hold(View):
    webhook_id: str
    held: bool
    waiting: int


class Released(Hold):
    released: int


class Dropped(Hold):
    dropped: int


def replay_of(
    replay: StoredReplay, outcomes: Mapping[str, int], first: list[InvocationSummary] | UnsetType = UNSET
) -> Replay:
    criteria, became = shown(ReplayedCalls, replay.wanted), ReplayOutcomes(**outcomes)
    return shown(Replay, replay, filter=criteria, count=replay.total, outcomes=became, first=first)
