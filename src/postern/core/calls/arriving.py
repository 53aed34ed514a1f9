"""How much memory the bodies may take that are still coming in, and who gets how much of it."""

from collections import Counter

MOST_ARRIVING = 256 * 1024 * 1024
ONE_CALLER = 8
"""A caller gets an eighth of what a webhook gets, so that one who wants it all leaves the webhook to the others."""


class ArrivingBytes:
    """A body is kept until it has come in whole, whoever sends it, so all of them share a bounded room.

    No webhook may hold more than is left free for everybody else: one alone gets half of the room, of two each a
    third. However many take as much as they can, as much is free as any of them has.
    """

    def __init__(self, most: int = MOST_ARRIVING) -> None:
        self._most = most
        self._total = 0
        self._webhooks: Counter[str] = Counter()
        self._callers: Counter[str] = Counter()

    def take(self, size: int, webhook_id: str, caller: str) -> bool:
        """Whether there is so much for them; then it is theirs until it is given back."""
        free = self._most - self._total - size
        if self._webhooks[webhook_id] + size > free or (self._callers[caller] + size) * ONE_CALLER > free:
            return False
        self._total += size
        self._webhooks[webhook_id] += size
        self._callers[caller] += size
        return True

    def give_back(self, size: int, webhook_id: str, caller: str) -> None:
        self._total -= size
        for shares, who in ((self._webhooks, webhook_id), (self._callers, caller)):
            shares[who] -= size
            if shares[who] <= 0:
                del shares[who]

    @property
    def held(self) -> int:
        return self._total
