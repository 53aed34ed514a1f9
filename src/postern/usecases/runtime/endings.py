"""Answers that callers heard and ends of runs, kept in memory until it is written down."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from msgspec import Struct, field

from postern.core.deliveries.delivery import End
from postern.core.history.invocation import AnswerHeard
from postern.core.history.volume import answer_name, latency_bucket
from postern.observe.logs import log

MOST_KEYS = 20_000
"""The most of each kind, while the store is away. The engine is asked again later for an end that was dropped."""


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
        """The ends that are being written. A start may be written before them or after."""
        self.news = asyncio.Event()

    def count(self, webhook_id: str, status: int, lasted: float) -> None:
        """Counts an answer, and how long its caller has waited."""
        self._noticed.counted[webhook_id, answer_name(status), latency_bucket(lasted)] += 1

    def answered(self, answer: AnswerHeard) -> None:
        self._noticed.answered.append(answer)
        self.news.set()

    def ended(self, key: str, end: End) -> None:
        """All runs of this delivery have ended. The first report counts."""
        self._noticed.ends.setdefault(key, end)
        self.news.set()

    @contextmanager
    def reported(self, key: str, end: End) -> Iterator[End]:
        """Yields the end to write, while it is being written: an earlier one that is not in the store yet, because the first
        one counts, or else the given one."""
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
        """Keeps an end that could not be written because the start of its delivery is not in the store yet. It replaces an
        end that came since. ``news`` is not set: a start may be tried for days, and each look would be a commit."""
        self._noticed.ends[key] = end

    def take(self) -> Noticed:
        """Takes all that is to be written now. Afterwards ``over`` is called in any case."""
        self.news.clear()
        taken, self._noticed = self._noticed, Noticed()
        taken.ends = {key: self._being_written.get(key, end) for key, end in taken.ends.items()}
        self._being_written |= taken.ends
        return taken

    def over(self, taken: Noticed) -> None:
        for key in taken.ends:
            self._being_written.pop(key, None)

    def put_back(self, taken: Noticed) -> None:
        now = self._noticed
        now.answered = [*taken.answered, *now.answered]
        now.ends = {**now.ends, **taken.ends}
        now.counted += taken.counted
        lost = max(0, len(now.answered) - MOST_KEYS), max(0, len(now.ends) - MOST_KEYS)
        if any(lost):
            now.answered = now.answered[lost[0] :]
            for key in list(now.ends)[: lost[1]]:
                del now.ends[key]
            log.warning("answers and ends of calls could not be recorded", answers=lost[0], ends=lost[1])
