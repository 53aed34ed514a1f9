"""Whether to delete by the time of day: a clock that is wrong for a minute must not cost what is kept."""

JUMP = 60.0
"""Seconds. A larger step means that somebody set the clock, or the machine slept."""
CONFIRMED = 3600.0
"""Seconds without a step, after which a clock is believed: wrong ones are mostly corrected within minutes."""
LONGEST_GAP = 86_400.0


class SteadyClock:
    def __init__(self) -> None:
        self._offset: float | None = None
        self._since = 0.0
        self._jumped = False

    def trusts(self, now: float, monotonic: float, last: float | None) -> bool:
        """``last``: when something was deleted last, or is known to have happened. If that is long ago, the clock may have
        been set while nobody looked, so it has to be confirmed too."""
        offset = now - monotonic
        if self._offset is None or abs(offset - self._offset) > JUMP:
            self._jumped = self._offset is not None
            self._offset, self._since = offset, monotonic
        if monotonic - self._since >= CONFIRMED:
            self._jumped = False
            return True
        return not self._jumped and (last is None or abs(now - last) < LONGEST_GAP)
