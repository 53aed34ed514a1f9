"""How often is too often: token buckets that cost one number each, and a bounded number of them."""

from collections import OrderedDict
from collections.abc import Hashable


class Buckets:
    """One bucket per key: ``burst`` at once, refilled at ``rate`` a second (GCRA: all a bucket keeps is when
    it will be full).

    The clock is the caller's. At most ``most`` keys are remembered, the longest unused forgotten first, so
    that a flood from ever new addresses cannot grow this: a forgotten bucket is a full one.
    """

    def __init__(self, most: int = 20_000) -> None:
        self._full_at: OrderedDict[Hashable, float] = OrderedDict()
        self._most = most

    def take(self, key: Hashable, rate: float, burst: float, now: float) -> float:
        """Take one: 0.0 when there was one, else the seconds until there is."""
        full_at = max(self._full_at.get(key, now), now) + 1.0 / rate
        wait = full_at - now - burst / rate
        if wait > 1e-9:
            return wait
        self._full_at[key] = full_at
        self._full_at.move_to_end(key)
        if len(self._full_at) > self._most:
            self._full_at.popitem(last=False)
        return 0.0

    def wait(self, key: Hashable, rate: float, burst: float, now: float) -> float:
        """What ``take`` would say, without taking."""
        wait = max(self._full_at.get(key, now), now) + 1.0 / rate - now - burst / rate
        return wait if wait > 1e-9 else 0.0

    def __len__(self) -> int:
        return len(self._full_at)


FAILED_AUTHENTICATIONS_PER_MINUTE = 20


class Limits:
    """The counters of one gateway process. Rates hold per process; `docs/how-to/capacity.md` says what that
    means for several."""

    def __init__(self) -> None:
        self._calls = Buckets()
        self._failures = Buckets()

    def call(self, webhook_id: str, rate: float, burst: float, now: float) -> float:
        return self._calls.take(webhook_id, rate, burst, now)

    def handshake(self, webhook_id: str, now: float) -> float:
        """Handshakes come before anybody has proven anything, and each is recorded."""
        return self._calls.take((webhook_id, "handshake"), 1.0, 60, now)

    def may_try(
        self, what: str, who: str, now: float, per_minute: int = FAILED_AUTHENTICATIONS_PER_MINUTE
    ) -> float:
        """Asked before authentication. A success costs nothing, so the real sender is never slowed by its own
        volume."""
        if not self._failures:
            return 0.0
        return self._failures.wait((what, who), per_minute / 60, per_minute, now)

    def failed(
        self, what: str, who: str, now: float, per_minute: int = FAILED_AUTHENTICATIONS_PER_MINUTE
    ) -> None:
        self._failures.take((what, who), per_minute / 60, per_minute, now)
