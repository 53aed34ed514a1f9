"""Whether the time of day may be trusted to delete by it: a clock that is set wrong for a minute must not cost what is kept."""

JUMP = 60.0
"""Seconds between two looks that only somebody who sets the clock, or a machine that slept, makes."""
CONFIRMED = 3600.0
"""A clock that has gone on for so long as it should is right: wrong ones are mostly set within minutes."""
LONGEST_GAP = 86_400.0


class SteadyClock:
    def __init__(self) -> None:
        self._offset: float | None = None
        self._since = 0.0
        self._jumped = False

    def trusts(self, now: float, monotonic: float, last: float | None) -> bool:
        """``last``: when something was deleted last, or is known to have happened. Long ago, the clock may have been set wrong
        while nobody looked, or the machine was off: then, too, an hour has to go by."""
        offset = now - monotonic
        if self._offset is None or abs(offset - self._offset) > JUMP:
            self._jumped = self._offset is not None
            self._offset, self._since = offset, monotonic
        if monotonic - self._since >= CONFIRMED:
            self._jumped = False
            return True
        return not self._jumped and (last is None or abs(now - last) < LONGEST_GAP)
