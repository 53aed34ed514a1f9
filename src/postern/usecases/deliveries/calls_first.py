"""While calls keep the process busy, starts get a part of its time: a caller waits for us, a start for nobody.

A sender that is answered too late sends again, or gives up; a start that comes later is only later. So when both want
more than there is, calls are taken first, and the starts follow as soon as fewer calls come.
"""

from collections.abc import Awaitable, Callable
from pathlib import Path
from time import monotonic, process_time

from postern.observe.calls import call_counts

THEIRS = 4.0
"""Times as long as a round of starts has taken, calls have the process to themselves before the next one."""
BUSY = 0.5
"""The part of the time that calls need for this. A start costs more than a call: where calls need half of the time, the other half is
too little for their starts, and these would wait in any case."""
LOOK = 0.003
"""Seconds that show whether calls keep the process busy, where the last rounds did not."""
REMEMBERED = 0.1
LONGEST = 0.5
"""Seconds after which the next round comes, however many calls there are."""

_SCHEDULING = Path("/proc/self/schedstat")


class CallsFirst:
    def __init__(self, pause: Callable[[float], Awaitable[None]]) -> None:
        self._pause = pause
        self._need = 0.0
        """The part of the time that calls have needed lately, between rounds."""
        self.begin()

    def begin(self) -> None:
        """A round of starts."""
        self._answered, self._used = call_counts.answered, time_used()

    async def let_calls_in(self) -> None:
        """After a round."""
        if call_counts.answered == self._answered:
            return
        began, used = monotonic(), time_used()
        theirs = min(LONGEST, (used - self._used) * THEIRS)
        await self._pause(theirs if self._need >= BUSY else min(LOOK, theirs))
        lasted = monotonic() - began
        needed = (time_used() - used) / lasted
        self._need += (needed - self._need) * min(1.0, lasted / REMEMBERED)


def time_used() -> float:
    """Seconds that this process has worked, or was ready to and could not: where others use the processor, or a container has a
    part of one, that is as good as work. Only Linux tells the second."""
    try:
        waited = int(_SCHEDULING.read_bytes().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        waited = 0.0
    return process_time() + waited
