"""A set of filters and columns of the history under a name, for one user."""

from msgspec import Struct


class SavedView(Struct, frozen=True):
    id: str
    owner: str
    name: str
    query: str
    """The filters and columns as the history's address has them."""
    created_at: float
