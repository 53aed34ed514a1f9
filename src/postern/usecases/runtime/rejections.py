"""A flood of rejected calls is noticed at once, not at the next pruning. What comes faster than it is trimmed is only
counted."""

import asyncio
from collections import Counter

from postern.core.operations.retention import REJECTED_BYTES

TRIM_AFTER = REJECTED_BYTES // 8
"""Bytes of one webhook's rejected calls since it was last trimmed."""


class Rejections:
    """How many bytes of rejected calls were stored in this process since each webhook was last trimmed."""

    def __init__(self) -> None:
        self._since: Counter[str] = Counter()
        self._full: set[str] = set()
        self.any_full = asyncio.Event()
        self._counted: Counter[tuple[str, int, str]] = Counter()

    def find_room(self, webhook_id: str, size: int) -> bool:
        """Whether there is room for one more call, which then has it."""
        if self._since[webhook_id] + size > REJECTED_BYTES:
            return False
        self._since[webhook_id] += size
        if self._since[webhook_id] >= TRIM_AFTER:
            self._full.add(webhook_id)
            self.any_full.set()
        return True

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
