"""The senders' key sets and certificates that were fetched: calls are checked with them.

Nobody who calls decides how often something is fetched: each address is asked once in a while, only so many calls wait for an
answer at a time, and of the addresses that calls name themselves (all of them the sender's own) only so many are asked for each
network of callers. A host whose keys have proven a call has a share of its own, which invented hosts do not take. If a set is
at hand no accepted call waits for it: it is renewed beside. A set that has proven a call is kept in the database, for the next start.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable

from postern.core.problems import FetchTrouble
from postern.observe.logs import log
from postern.usecases.ports import Fetch

FETCH_WITHIN = 5.0
LARGEST_KEY_SET = 256 * 1024
RENEWED_AFTER = 3600.0
KEPT_FOR = 24 * 3600.0
"""Seconds for which a set is good when its address does not answer any more."""
ASKED_EVERY = 60.0
"""Seconds between two requests to an address, whatever callers send and whatever it answers."""
MOST_NAMED = 5
"""Addresses that the calls of one network can have asked within that time. Addresses whose set is at hand are asked anyway."""
MOST_OF_ALL = 100
"""The same for all networks together."""
MOST_WAITING = 100
MOST_SETS = 500


class KeySets:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.fetch: Fetch | None = None
        self.at_hand: dict[str, bytes] = {}
        """The fetched sets by their addresses, as a check takes them."""
        self._clock = clock
        self._fetched_at: dict[str, float] = {}
        self._asked_at: dict[str, float] = {}
        self._named: deque[tuple[float, str, bool]] = deque()
        """When the calls of which network had an address asked that was not at hand, and whether its host was known."""
        self._proven: set[str] = set()
        self._under_way: dict[str, asyncio.Task[None]] = {}
        self._waiting = 0
        self.keep: Callable[[str, bytes], object] = lambda address, text: None
        """Begins to write down what was fetched from this address, for the next start."""

    def take_in(self, address: str, text: bytes, age: float) -> None:
        """Takes what an earlier start has kept."""
        self.at_hand[address] = text
        self._asked_at[address] = self._fetched_at[address] = self._clock() - max(age, 0.0)
        self._proven.add(address)

    def look(self, address: str) -> dict[str, bytes]:
        """Returns what is at hand, to judge a call with. Drops the set if it is too old, and has it fetched again if it is getting old."""
        age = self._clock() - self._fetched_at.get(address, self._clock())
        if age > KEPT_FOR:
            self.at_hand.pop(address, None)
            self._fetched_at.pop(address, None)
        elif age > RENEWED_AFTER:
            self._ask(address)
        return self.at_hand

    def prove(self, address: str) -> None:
        """Notes that a call was proven with this set: from now on it is kept, and anew each time it is renewed."""
        if address not in self._proven and address in self.at_hand:
            self._proven.add(address)
            self.keep(address, self.at_hand[address])

    async def wait(self, address: str, network: str = "") -> bool:
        """Waits for the set, at most ``FETCH_WITHIN`` seconds. Returns whether it is a newer one than before."""
        before = self._fetched_at.get(address)
        task = self._ask(address, network)
        if task is None or self._waiting >= MOST_WAITING:
            return False
        self._waiting += 1
        try:
            await asyncio.wait([task])
        finally:
            self._waiting -= 1
        return self._fetched_at.get(address) != before

    def may_wait(self, address: str, network: str = "") -> bool:
        return self._waiting < MOST_WAITING and (
            address in self._under_way or self._may_ask(address, network)
        )

    def _may_ask(self, address: str, network: str) -> bool:
        asked_at, now = self._asked_at.get(address), self._clock()
        if self.fetch is None or (asked_at is not None and now - asked_at < ASKED_EVERY):
            return False
        if not network or address in self.at_hand:
            return True
        while self._named and now - self._named[0][0] >= ASKED_EVERY:
            self._named.popleft()
        known = self._is_known(address)
        others = [by for _, by, is_known in self._named if is_known == known]
        return len(others) < MOST_OF_ALL and others.count(network) < MOST_NAMED

    def _is_known(self, address: str) -> bool:
        host = _host_of(address)
        return any(_host_of(proven) == host for proven in self._proven)

    def _ask(self, address: str, network: str = "") -> asyncio.Task[None] | None:
        """``network``: the caller's, if it is the caller who names the address."""
        task = self._under_way.get(address)
        if task is None and self._may_ask(address, network):
            if len(self._asked_at) >= MOST_SETS:  # webhooks that are gone, and addresses where nothing is
                asked_at = self._asked_at
                oldest = min(
                    asked_at, key=lambda url: (url in self._proven, url in self.at_hand, asked_at[url])
                )
                self._proven.discard(oldest)
                for known in (self._asked_at, self._fetched_at, self.at_hand):
                    known.pop(oldest, None)
            if network and address not in self.at_hand:
                self._named.append((self._clock(), network, self._is_known(address)))
            self._asked_at[address] = self._clock()
            task = self._under_way[address] = asyncio.get_running_loop().create_task(self._fetch(address))
        return task

    async def _fetch(self, address: str) -> None:
        assert self.fetch is not None
        try:
            answer = await self.fetch(address, headers={}, timeout=FETCH_WITHIN, max_bytes=LARGEST_KEY_SET)
            if answer.status == 200:
                self.at_hand[address], self._fetched_at[address] = answer.body, self._clock()
                if address in self._proven:
                    self.keep(address, self.at_hand[address])
            else:
                log.warning("a sender's keys could not be fetched", address=address, status=answer.status)
        except FetchTrouble as trouble:
            log.warning("a sender's keys could not be fetched", address=address, reason=trouble.detail)
        finally:
            self._under_way.pop(address, None)


def _host_of(address: str) -> str:
    return address.split("/", 3)[2]
