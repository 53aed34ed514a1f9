"""Counts calls that come faster than anybody can read them, instead of showing each."""

from collections import Counter, deque

from msgspec import Struct, field

READABLE = 20
"""Calls a second."""
SHORTEST = 2.0
"""Seconds for which calls are counted at least: a page must not change to and fro."""


class Crowd(Struct):
    """``now`` is any clock in seconds that never goes back."""

    began: float | None = None
    """When counting began; None while each call is shown."""
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Calls by webhook and outcome, since it began."""
    _latest: deque[tuple[float, int]] = field(default_factory=deque)

    def arrive(self, calls: list[tuple[str, str]], now: float) -> bool:
        """Takes calls that have come, by webhook and outcome. Returns True if they are counted and not shown."""
        if calls:
            self._latest.append((now, len(calls)))
        if self.began is None and self.rate(now) > READABLE:
            self.began = now
            self.counts.clear()
        if self.began is None:
            return False
        self.counts.update(calls)
        return True

    def rate(self, now: float) -> int:
        """Calls in the last second."""
        while self._latest and self._latest[0][0] <= now - 1:
            self._latest.popleft()
        return sum(number for _, number in self._latest)

    def is_over(self, now: float) -> bool:
        """Whether calls can be shown again, one by one."""
        return self.began is not None and now - self.began >= SHORTEST and self.rate(now) <= READABLE

    def end(self) -> None:
        self.began = None
