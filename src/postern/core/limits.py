"""Rate limits: token buckets that cost one number each, and a bounded number of them."""

import heapq
from collections.abc import Callable, Hashable

from msgspec import Struct


class Buckets:
    """One bucket per key: ``burst`` at once, refilled at ``rate`` a second (GCRA: a bucket keeps only the time when it
    will be full). At most ``most`` keys are remembered. The fullest bucket is forgotten first, not the one unused for the
    longest: a flood from ever new addresses must not make the gateway forget who is at the limit.
    """

    def __init__(self, most: int = 20_000) -> None:
        self._full_at: dict[Hashable, float] = {}
        self._most = most

    def take(self, key: Hashable, rate: float, burst: float, now: float, number: float = 1.0) -> float:
        """Takes that number and returns 0.0, or returns the seconds until there are so many."""
        full_at = max(self._full_at.get(key, now), now) + number / rate
        wait = full_at - now - burst / rate
        if wait > 1e-9:
            return wait
        self._full_at[key] = full_at
        if len(self._full_at) > self._most:
            self._forget(now)
        return 0.0

    def give_back(self, key: Hashable, rate: float) -> None:
        """Puts back one that was taken and does not count."""
        if key in self._full_at:
            self._full_at[key] -= 1.0 / rate

    def wait(self, key: Hashable, rate: float, burst: float, now: float) -> float:
        """Returns what ``take`` would, without taking anything."""
        wait = max(self._full_at.get(key, now), now) + 1.0 / rate - now - burst / rate
        return wait if wait > 1e-9 else 0.0

    def owed(self, key: Hashable, now: float) -> float:
        """Seconds until the bucket is full again."""
        return max(0.0, self._full_at.get(key, now) - now)

    def _forget(self, now: float) -> None:
        owing = [(key, full_at) for key, full_at in self._full_at.items() if full_at > now]
        # Half of them at a time: this looks at every bucket, which is too much work for each new one.
        self._full_at = dict(heapq.nlargest(self._most // 2, owing, key=lambda pair: pair[1]))

    def __len__(self) -> int:
        return len(self._full_at)


FAILED_AUTHENTICATIONS_PER_MINUTE = 20
MOST_REJECTED_AT_ONCE = 64 * 1024 * 1024
REJECTED_PER_SECOND = 512 * 1024
"""Bytes of a webhook's rejected calls that are recorded, from all addresses that were rejected too often lately."""
COST_OF_RECORDING = 8 * 1024
"""Bytes that are counted for each call besides its own: many small calls keep the processor busy, not the disk."""


class Tries(Struct, frozen=True):
    """How many failures a minute are allowed for a key."""

    key: Hashable
    per_minute: int = FAILED_AUTHENTICATIONS_PER_MINUTE


class Limits:
    """The counters of one gateway process. Rates hold per process; `docs/how-to/capacity.md` says what that means for
    several. The clock must only run forward: wall time that is set back would reject everybody for as long as the step.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._calls = Buckets()
        self._failures = Buckets()
        self._tries = Buckets()
        self._recorded = Buckets()

    def call(self, webhook_id: str, rate: float, burst: float) -> float:
        return self._calls.take(webhook_id, rate, burst, self._clock())

    def handshake(self, webhook_id: str) -> float:
        """Handshakes are limited by themselves: callers have proven nothing yet, and each one is recorded."""
        return self._calls.take((webhook_id, "handshake"), 1.0, 60, self._clock())

    def records(self, webhook_id: str, network: str, size: int, proven: bool) -> bool:
        """Whether a rejected call is recorded, as the first of each network are. A proven sender shares its room with nobody."""
        now, per_minute = self._clock(), FAILED_AUTHENTICATIONS_PER_MINUTE
        if not proven and not self._failures.take((webhook_id, network), per_minute / 60, per_minute, now):
            return True
        taken = size + COST_OF_RECORDING
        shared = webhook_id, proven
        return not self._recorded.take(shared, REJECTED_PER_SECOND, MOST_REJECTED_AT_ONCE, now, taken)

    def over(self, webhook_id: str, network: str) -> bool:
        """Whether this address was rejected too often lately."""
        per_minute = FAILED_AUTHENTICATIONS_PER_MINUTE
        return self._failures.wait((webhook_id, network), per_minute / 60, per_minute, self._clock()) > 0

    def reserve(self, *tries: Tries) -> float:
        """Counts these as failures in advance, so that tries at the same moment do not all pass. If one has to wait, none is
        counted, and its seconds are returned."""
        now = self._clock()
        wait = max(
            self._tries.wait(limit.key, limit.per_minute / 60, limit.per_minute, now) for limit in tries
        )
        if not wait:
            for limit in tries:
                self._tries.take(limit.key, limit.per_minute / 60, limit.per_minute, now)
        return wait

    def give_back(self, *tries: Tries) -> None:
        """Takes back what ``reserve`` has counted."""
        for limit in tries:
            self._tries.give_back(limit.key, limit.per_minute / 60)

    def owed(self, tries: Tries) -> float:
        """A number that grows with the failures of late."""
        return self._tries.owed(tries.key, self._clock())
