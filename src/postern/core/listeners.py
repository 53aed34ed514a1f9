"""Who listens to calls with `postern listen`, and what was handed to them."""

from msgspec import Struct

LEASE = 10.0
"""Seconds for which a listener that is not heard of is taken to be there. It is not long, because meanwhile callers wait
for one that may have died; and longer than a gateway takes to start anew."""
ENDED_KEPT = 300.0
"""Seconds for which one that was ended can still ask by whom."""


class Listener(Struct, frozen=True):
    id: str
    name: str
    """What it calls itself, like ada@thinkpad."""
    owner_id: str
    """Of the user or API key; empty for the command line on the database itself."""
    owner: str
    address: str
    since: float
    lease_until: float
    answers: str | None = None
    """The webhook whose calls it answers in the place of the engine; one listener at a time does."""
    ended_by: str | None = None
    """Who has ended it. The row is kept for a while, so that the listener can be answered why."""

    def is_there(self, now: float) -> bool:
        return self.lease_until > now and self.ended_by is None


class Handed(Struct, frozen=True):
    """A recorded call that was given to a listener."""

    id: str
    invocation_id: str
    listener_id: str
    listener: str
    """Its name, which outlives it."""
    owner: str
    at: float
    delivery_key: str | None = None
    """Of the delivery whose caller waits for the answer; None for a replay, which nobody waits for."""
    asked_by: str | None = None
    """Who had it replayed."""
    ended_at: float | None = None
    status: int | None = None
    """What the listener's program answered."""
    duration_us: int | None = None
    error: str = ""


class GoneListener(Struct, frozen=True):
    """A listener that is there no more, and the deliveries whose callers waited for it."""

    listener: Listener
    unanswered: tuple[str, ...]


class AlreadyAnswered(Exception):
    """Another listener answers the calls of this webhook."""

    def __init__(self, holder: Listener) -> None:
        super().__init__(holder.name)
        self.holder = holder
