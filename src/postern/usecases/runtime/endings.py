"""What became of calls after they were recorded, as this process noticed it and until it is written down."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from msgspec import Struct, field

from postern.core.deliveries.delivery import End
from postern.core.history.invocation import AnswerHeard
from postern.core.history.volume import answer_name, latency_bucket
from postern.observe.logs import Log

MOST = 20_000
"""Of each kind, while the store is away. An end that is let go of is asked for again later."""

log = Log()


class Noticed(Struct):
    answered: list[AnswerHeard] = field(default_factory=list)
    ends: dict[str, End] = field(default_factory=dict)
    """By the delivery's key."""
    counted: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    """Answers by webhook, name and latency bucket."""

    def __bool__(self) -> bool:
        return bool(self.answered or self.ends or self.counted)


class Endings:
    def __init__(self) -> None:
        self._noticed = Noticed()
        self._being_written: dict[str, End] = {}
        """Those that are on their way into the store, where a start may be written down before them or after."""
        self.news = asyncio.Event()

    def count(self, webhook_id: str, status: int, lasted: float) -> None:
        """An answer that was given, and how long its caller had waited."""
        self._noticed.counted[webhook_id, answer_name(status), latency_bucket(lasted)] += 1

    def answered(self, answer: AnswerHeard) -> None:
        self._noticed.answered.append(answer)
        self.news.set()

    def ended(self, key: str, end: End) -> None:
        """All runs of this delivery are over. Who says so first is right."""
        self._noticed.ends.setdefault(key, end)
        self.news.set()

    @contextmanager
    def reported(self, key: str, end: End) -> Iterator[End]:
        """For as long as the end of this delivery is being written: the end to write. The first one counts, so that is an
        earlier one which is not in the store yet; where there is none, it is the given one."""
        first = self._noticed.ends.get(key) or self._being_written.get(key)
        if first is not None:
            yield first
            return
        self._being_written[key] = end
        try:
            yield end
        finally:
            self._being_written.pop(key, None)

    def early(self, key: str, end: End) -> None:
        """Keep an end that could not be written because the start of its delivery is not in the store yet. It was heard
        first, so it replaces an end that came since. ``news`` is not set: a start may be tried again for days, and each
        look would be a commit."""
        self._noticed.ends[key] = end

    def take(self) -> Noticed:
        """All that is to be written now. ``over`` is called when that is done, well or not."""
        self.news.clear()
        taken, self._noticed = self._noticed, Noticed()
        taken.ends = {key: self._being_written.get(key, end) for key, end in taken.ends.items()}
        self._being_written |= taken.ends
        return taken

    def over(self, taken: Noticed) -> None:
        """The writing of these is over, whether they were written or not."""
        for key in taken.ends:
            self._being_written.pop(key, None)

    def put_back(self, taken: Noticed) -> None:
        """It could not be written down."""
        now = self._noticed
        now.answered = [*taken.answered, *now.answered]
        now.ends = {**now.ends, **taken.ends}
        now.counted += taken.counted
        lost = max(0, len(now.answered) - MOST), max(0, len(now.ends) - MOST)
        if any(lost):
            now.answered = now.answered[lost[0] :]
            for key in list(now.ends)[: lost[1]]:
                del now.ends[key]
            log.warning("answers and ends of calls could not be recorded", answers=lost[0], ends=lost[1])
