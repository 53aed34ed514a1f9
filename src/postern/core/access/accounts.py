"""API keys, users, and their sessions."""

from dataclasses import dataclass, field
from typing import Literal, get_args

from msgspec import Struct

from postern.core.moment import Time

Level = Literal["read", "write", "admin"]
LEVELS: tuple[Level, ...] = get_args(Level)


INVITED = "invited"


class ApiKey(Struct, frozen=True, rename="camel"):
    id: str
    name: str
    level: Level
    prefix: str
    created_at: Time
    created_by: str
    last_used_at: Time | None


class Actor(Struct, frozen=True):
    """Who makes a request, with their access level."""

    name: str
    level: Level
    id: str = ""
    """The id of the user or key; empty for the command line and the first start."""
    session: str = ""
    """The id of the session, if a person signed in."""

    @property
    def is_key(self) -> bool:
        """Whether it is an API key, and no signed-in person."""
        return bool(self.id) and not self.session

    @property
    def owner(self) -> str:
        """Owns what is kept for this actor: the id, or the name if there is none."""
        return self.id or self.name

    def may(self, needed: Level) -> bool:
        return LEVELS.index(self.level) >= LEVELS.index(needed)


@dataclass(frozen=True, slots=True)
class User:
    id: str
    name: str
    level: Level
    password_hash: str = field(repr=False)
    created_at: float
    created_by: str
    last_signed_in_at: float | None = None

    @property
    def invited_until(self) -> float | None:
        """None if they have chosen a password. Until then the digest of an invitation stands in the place of its hash."""
        kind, _, rest = self.password_hash.partition(":")
        return float(rest.partition(":")[0]) if kind == INVITED else None


class Session(Struct, frozen=True):
    """A signed-in browser. Only the browser knows its secret."""

    id: str
    user_id: str
    created_at: float
    seen_at: float
    address: str
    user_agent: str
