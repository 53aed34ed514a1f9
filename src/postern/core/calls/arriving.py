"""The memory for bodies that are still coming in, and who gets how much of it."""

import heapq
from collections import Counter, defaultdict, deque
from collections.abc import Callable

from msgspec import Struct

MOST_ARRIVING = 256 * 1024 * 1024
ONE_CALLER = 8
"""A caller gets an eighth of what a webhook gets, so that a greedy caller leaves room for the webhook's others."""
FREED_AT_ONCE = 64
"""Choosing who gives way looks at every body, so it frees a sixty-fourth of all the memory at once."""


class Body(Struct, eq=False):
    webhook_id: str
    caller: str
    turn_away: Callable[[], None]
    """Answers the caller, and has this given back."""
    size: int = 0


class ArrivingBytes:
    """Strangers' bodies are kept until they are whole, so all bodies together share a bounded memory.

    A webhook may hold as much as is left free: one alone gets half of the memory, two get a third each. Where a webhook's
    part is full, the callers who have the most of it give way, each with its oldest body.
    """

    def __init__(self, most: int = MOST_ARRIVING) -> None:
        self._most = most
        self.held = 0
        self._webhooks: Counter[str] = Counter()
        self._callers: Counter[str] = Counter()
        self._bodies: dict[Body, None] = {}

    def take(self, body: Body, size: int) -> bool:
        """Whether the body could grow so much. If not, it was turned away."""
        self._bodies[body] = None
        if (self._callers[body.caller] + size) * ONE_CALLER > self._free(size):
            body.turn_away()
        while body in self._bodies and self._webhooks[body.webhook_id] + size > self._free(size):
            for other in self._first_to_go(body, size):
                other.turn_away()
        if body not in self._bodies:
            return False
        self._grow(body, size)
        return True

    def _free(self, size: int) -> int:
        return self._most - self.held - size

    def give_back(self, body: Body) -> None:
        self._bodies.pop(body, None)
        self._grow(body, -body.size)

    def _grow(self, body: Body, size: int) -> None:
        body.size += size
        self.held += size
        for shares, who in ((self._webhooks, body.webhook_id), (self._callers, body.caller)):
            shares[who] += size
            if shares[who] <= 0:
                del shares[who]

    def _first_to_go(self, asking: Body, size: int) -> list[Body]:
        of_caller: defaultdict[str, deque[Body]] = defaultdict(deque)
        held = Counter({asking.caller: size})
        for body in self._bodies:
            if body.webhook_id == asking.webhook_id:
                of_caller[body.caller].append(body)
                held[body.caller] += body.size
        most_first = [(-held[caller], place, caller) for place, caller in enumerate(of_caller)]
        heapq.heapify(most_first)
        going: list[Body] = []
        to_free = max(size, self._most // FREED_AT_ONCE)
        while to_free > 0 and most_first:
            has, place, caller = most_first[0]
            body = of_caller[caller].popleft()
            going.append(body)
            to_free -= body.size
            if of_caller[caller]:
                heapq.heapreplace(most_first, (has + body.size, place, caller))
            else:
                heapq.heappop(most_first)
        return going
