"""How much memory the bodies may take that are still coming in, and who gets how much of it."""

import heapq
from collections import Counter, defaultdict, deque
from collections.abc import Callable

from msgspec import Struct

MOST_ARRIVING = 256 * 1024 * 1024
ONE_CALLER = 8
"""A caller gets an eighth of what a webhook gets, so that one who wants it all leaves the webhook to the others."""
AT_ONCE = 64
"""Looking for who has to go costs a look at all bodies, so it makes room for a sixty-fourth of all there is."""


class Body(Struct, eq=False):
    """One that is coming in."""

    webhook_id: str
    caller: str
    turn_away: Callable[[], None]
    """Has it given back."""
    size: int = 0


class ArrivingBytes:
    """A body is kept until it has come in whole, whoever sends it, so all of them share a bounded room.

    No webhook may hold more than is left free for everybody else: one alone gets half of the room, of two each a
    third. However many take as much as they can, as much is free as any of them has. Where a webhook's part is full, the
    callers who have the most of it give way, each with the body that has been coming in for the longest.
    """

    def __init__(self, most: int = MOST_ARRIVING) -> None:
        self._most = most
        self._total = 0
        self._webhooks: Counter[str] = Counter()
        self._callers: Counter[str] = Counter()
        self._bodies: dict[Body, None] = {}

    def take(self, body: Body, size: int) -> bool:
        """Whether there is so much more for it; then it has it until it is given back. Otherwise it was turned away."""
        self._bodies[body] = None
        if (self._callers[body.caller] + size) * ONE_CALLER > self._free(size):
            body.turn_away()
        while body in self._bodies and self._webhooks[body.webhook_id] + size > self._free(size):
            for one in self._first_to_go(body, size):
                one.turn_away()
        if body not in self._bodies:
            return False
        self._grow(body, size)
        return True

    def _free(self, size: int) -> int:
        return self._most - self._total - size

    def give_back(self, body: Body) -> None:
        self._bodies.pop(body, None)
        self._grow(body, -body.size)

    @property
    def held(self) -> int:
        return self._total

    def _grow(self, body: Body, size: int) -> None:
        body.size += size
        self._total += size
        for shares, who in ((self._webhooks, body.webhook_id), (self._callers, body.caller)):
            shares[who] += size
            if shares[who] <= 0:
                del shares[who]

    def _first_to_go(self, asking: Body, size: int) -> list[Body]:
        of_caller: defaultdict[str, deque[Body]] = defaultdict(deque)
        held = Counter({asking.caller: size})
        for one in self._bodies:
            if one.webhook_id == asking.webhook_id:
                of_caller[one.caller].append(one)
                held[one.caller] += one.size
        most_first = [(-held[caller], place, caller) for place, caller in enumerate(of_caller)]
        heapq.heapify(most_first)
        going: list[Body] = []
        wanted = max(size, self._most // AT_ONCE)
        while wanted > 0 and most_first:
            has, place, caller = most_first[0]
            one = of_caller[caller].popleft()
            going.append(one)
            wanted -= one.size
            if of_caller[caller]:
                heapq.heapreplace(most_first, (has + one.size, place, caller))
            else:
                heapq.heappop(most_first)
        return going
