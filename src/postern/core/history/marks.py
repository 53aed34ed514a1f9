"""What people add to a recorded call: bookmarks, notes, and the calls they make of it by editing. The call itself
stays as it came."""

from dataclasses import dataclass

LONGEST_NOTE = 2_000
MOST_NOTES = 50


@dataclass(frozen=True, slots=True)
class Bookmark:
    at: float
    author: str


@dataclass(frozen=True, slots=True)
class CallNote:
    id: str
    invocation_id: str
    at: float
    author: str
    text: str


@dataclass(frozen=True, slots=True)
class Edited:
    """A call that nobody sent: somebody made it of a recorded one and started its workflow with it."""

    made_from: str
    author: str
    changed: list[str]
    """What differs, in words."""


@dataclass(frozen=True, slots=True)
class Marks:
    notes: list[CallNote]
    """The oldest first."""
    edited: list[str]
    """The calls that were made of this one."""
