"""Which listener answers the calls of which webhook, as far as this process knows, and who is to be woken for them.

The rows are the truth. What is kept here is at most a second old, so that a call need not ask them.
"""

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from postern.core.listeners import Listener


class Listeners:
    def __init__(self) -> None:
        self._answering: dict[str, Listener] = {}
        self._waiting: dict[str, set[asyncio.Event]] = {}
        self.changed = asyncio.Event()
        """Somebody came or went: look now, not at the next round."""
        self.closed = False

    def answering(self, webhook_id: str, now: float) -> Listener | None:
        found = self._answering.get(webhook_id)
        return found if found is not None and found.is_there(now) else None

    def take_in(self, listeners: Iterable[Listener]) -> None:
        self._answering = {one.answers: one for one in listeners if one.answers is not None}

    @contextmanager
    def waiting(self, listener_id: str) -> Iterator[asyncio.Event]:
        """Set when something is there for this listener."""
        event = asyncio.Event()
        waiting = self._waiting.setdefault(listener_id, set())
        waiting.add(event)
        try:
            yield event
        finally:
            waiting.discard(event)
            if not waiting and self._waiting.get(listener_id) is waiting:
                del self._waiting[listener_id]

    def wake(self, listener_id: str) -> None:
        for event in self._waiting.get(listener_id, ()):
            event.set()

    def close(self) -> None:
        """Nobody waits here any more: the process is about to end."""
        self.closed = True
        for listener_id in self._waiting:
            self.wake(listener_id)
