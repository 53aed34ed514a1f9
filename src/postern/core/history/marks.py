"""What people add to a recorded call: bookmarks, notes, and the calls they make of it by editing. The call itself
stays as it came. And the views of the history that they keep."""

from msgspec import Struct

LONGEST_NOTE = 2_000
MOST_NOTES = 50


class Bookmark(Struct, frozen=True):
    at: float
    author: str


class CallNote(Struct, frozen=True):
    id: str
    invocation_id: str
    at: float
    author: str
    text: str


class Edited(Struct, frozen=True):
    """A call that nobody sent: somebody made it of a recorded one and started its workflow with it."""

    made_from: str
    author: str
    changed: list[str]
    """What differs, in words."""


class Marks(Struct, frozen=True):
    notes: list[CallNote]
    """The oldest first."""
    edited: list[str]
    """The calls that were made of this one."""


class SavedView(Struct, frozen=True):
    """A set of filters and columns of the history under a name, for one user."""

    id: str
    owner: str
    name: str
    query: str
    """The filters and columns as the history's address has them."""
    created_at: float
