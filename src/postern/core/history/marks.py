"""Marks that people add to the history: bookmarks, notes, edited copies of calls, saved views. The calls stay as they came."""

from msgspec import Struct

from postern.core.moment import Time

LONGEST_NOTE = 2_000
MOST_NOTES = 50


class Bookmark(Struct, frozen=True, rename="camel"):
    at: Time
    by: str


class Note(Struct, frozen=True):
    id: str
    at: Time
    by: str
    text: str


class EditedFrom(Struct, frozen=True, rename="camel"):
    """``changed``: what differs from the call that it was made of, in words."""

    invocation_id: str
    by: str
    changed: list[str]


class Marks(Struct, frozen=True):
    """A call's notes, the oldest first, and the calls that were made of it."""

    notes: list[Note]
    edited: list[str]


class SavedView(Struct, frozen=True):
    """Filters and columns of the history under a name, for one user. ``query``: as the page's address has them."""

    id: str
    owner: str
    name: str
    query: str
    created_at: float
