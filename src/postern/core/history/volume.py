"""Volumes, counted in buckets of time: calls by outcome, what their callers heard, how runs ended, how long each took."""

from bisect import bisect_left
from functools import cache
from typing import Literal, get_args

from msgspec import Struct, field

from postern.core.history.invocation import Status

CountedOutcome = Literal["accepted", "filtered", "duplicate", "handshake", "rejected"]
OUTCOMES: tuple[CountedOutcome, ...] = get_args(CountedOutcome)
LATENCY_BOUNDS_MS = (1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 1500, 2500, 5000, 10000, 30000)

# These are counted beside the calls, under names that no outcome has.
ANSWER, END, UNKEPT = "answer:", "end:", "unkept:"


@cache  # asked at every call; there are a few hundred statuses
def answer_name(status: int) -> str:
    return f"{ANSWER}{status}"


def end_name(state: str) -> str:
    return f"{END}{state}"


def is_call(name: str) -> bool:
    """Whether calls are counted under this name, and not what became of them."""
    return ":" not in name


def latency_bucket(lasted: float) -> int:
    """The place of the first bound that is not shorter than so many seconds; the number of bounds if none is."""
    return bisect_left(LATENCY_BOUNDS_MS, lasted * 1000)


class Counts(Struct):
    """Counts by name and by duration. The rest of ``total`` was slower than every bound."""

    total: int = 0
    by_name: dict[str, int] = field(default_factory=dict)
    within: list[int] = field(default_factory=lambda: [0] * len(LATENCY_BOUNDS_MS))
    """For each bound, how many lasted no longer than it, and longer than the bound before it."""

    def add(self, name: str, count: int, within: list[int]) -> None:
        self.add_all(Counts(count, {name: count}, within))

    def add_all(self, other: "Counts") -> None:
        self.total += other.total
        for name, count in other.by_name.items():
            self.by_name[name] = self.by_name.get(name, 0) + count
        self.within = [mine + more for mine, more in zip(self.within, other.within, strict=True)]

    def percentile(self, percent: int) -> int | None:
        """The first bound within which so many of a hundred were done: no more is known. None if none is."""
        seen = 0
        for bound, count in zip(LATENCY_BOUNDS_MS, self.within, strict=True):
            seen += count
            if seen and seen * 100 >= percent * self.total:
                return bound
        return None


class Volume(Struct):
    """The counts of one bucket of time."""

    calls: Counts = field(default_factory=Counts)
    """By outcome or reason; how long judging took."""
    answers: Counts = field(default_factory=Counts)
    """By HTTP status; how long the callers waited."""
    ends: Counts = field(default_factory=Counts)
    """Deliveries by how their runs ended; how long the runs took."""
    unkept: Counts = field(default_factory=Counts)
    """Rejected calls that are not in the history, by reason: they came in a flood, or there was no room for them."""

    def add(self, name: str, count: int, within: list[int]) -> None:
        for prefix, counts in ((ANSWER, self.answers), (END, self.ends), (UNKEPT, self.unkept)):
            if name.startswith(prefix):
                counts.add(name.removeprefix(prefix), count, within)
                return
        self.calls.add(name, count, within)

    def add_all(self, other: "Volume") -> None:
        for name in self.__struct_fields__:
            getattr(self, name).add_all(getattr(other, name))

    def outcomes(self) -> dict[str, int]:
        return outcomes(self.calls.by_name)


def outcome_of(status: Status) -> CountedOutcome:
    """The decision about the call, whatever has become of it since."""
    match status:
        case "rejected" | "filtered" | "duplicate" | "handshake":
            return status
        case (
            "accepted"
            | "held"
            | "started"
            | "responded"
            | "completed"
            | "failed"
            | "lost"
            | "dropped"
            | "superseded"
        ):
            return "accepted"


def outcomes(by_code: dict[str, int]) -> dict[str, int]:
    """The codes, summed up in the groups that a chart shows."""
    groups: dict[str, int] = dict.fromkeys(OUTCOMES, 0)
    for code, calls in by_code.items():
        groups[code if code in groups else "rejected"] += calls
    return groups
