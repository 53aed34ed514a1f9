"""A flood of rejected calls is noticed at once, not at the next pruning. Most of its calls are only counted."""

import asyncio
from collections import Counter

TRIM_AFTER = 500
"""Rejected calls of one webhook since it was last trimmed: so many more than the limit may lie there for a
moment."""


class Rejections:
    """How many rejected calls were stored in this process since each webhook was last trimmed."""

    def __init__(self) -> None:
        self._since: Counter[str] = Counter()
        self._full: set[str] = set()
        self.any_full = asyncio.Event()
        self._counted: Counter[tuple[str, int, str]] = Counter()

    def noticed(self, webhook_id: str) -> None:
        self._since[webhook_id] += 1
        if self._since[webhook_id] >= TRIM_AFTER:
            self._full.add(webhook_id)
            self.any_full.set()

    def take(self) -> list[str]:
        self.any_full.clear()
        taken = list(self._full)
        self._full.clear()
        for webhook_id in taken:
            del self._since[webhook_id]
        return taken

    def count(self, webhook_id: str, code: str, at: float) -> None:
        """One that is not recorded by itself."""
        self._counted[webhook_id, int(at // 60), code] += 1

    def take_counted(self) -> Counter[tuple[str, int, str]]:
        """By webhook, minute and code."""
        taken, self._counted = self._counted, Counter()
        return taken

    def put_back(self, counted: Counter[tuple[str, int, str]]) -> None:
        self._counted += counted
