"""A set of filters and columns of the history under a name, for one user."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SavedView:
    id: str
    owner: str
    name: str
    query: str
    """The filters and columns as the history's address has them."""
    created_at: float
