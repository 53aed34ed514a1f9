"""Listeners, which are running `postern listen` commands, and the calls that were handed to them."""

from msgspec import Struct

LEASE = 10.0
"""Seconds that a silent listener counts as there: longer than a gateway takes to restart."""
ENDED_KEPT = 300.0
"""Seconds for which an ended listener can still ask who has ended it."""


class Listener(Struct, frozen=True):
    id: str
    name: str
    """Its own name for itself, like ada@thinkpad."""
    owner_id: str
    """The id of the user or API key; empty for the command line on the database itself."""
    owner: str
    address: str
    since: float
    lease_until: float
    ended_by: str | None = None

    def is_there(self, now: float) -> bool:
        return self.lease_until > now and self.ended_by is None


class ListenerCall(Struct, frozen=True):
    """A recorded call that was given to a listener, to be seen again."""

    id: str
    invocation_id: str
    listener_id: str
    listener: str
    """The listener's name."""
    owner: str
    at: float
    asked_by: str
    """The person who had it replayed."""
    ended_at: float | None = None
    status: int | None = None
    """The status that the listener's program answered."""
    duration_us: int | None = None
    error: str = ""
