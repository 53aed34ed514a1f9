"""Who may ask for what: API keys, users, their sessions."""

from dataclasses import dataclass, field
from typing import Literal, get_args

from msgspec import Struct

Level = Literal["read", "write", "admin"]
LEVELS: tuple[Level, ...] = get_args(Level)


class ApiKey(Struct, frozen=True):
    id: str
    name: str
    level: Level
    prefix: str
    created_at: float
    created_by: str
    last_used_at: float | None = None


class Actor(Struct, frozen=True):
    """Who is asking, and what they may do."""

    name: str
    level: Level
    id: str = ""
    """The user's or the key's id; empty where neither asks (the command line, the first start)."""
    session: str = ""
    """The id of the session, where a person asks through one."""

    @property
    def is_key(self) -> bool:
        """An API key asks, and no person who is signed in."""
        return bool(self.id) and not self.session

    @property
    def owner(self) -> str:
        """Whose is what is kept for whoever asks: the id, or where there is none the name."""
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


class Session(Struct, frozen=True):
    """A signed-in browser. Its secret is known to the browser alone."""

    id: str
    user_id: str
    created_at: float
    seen_at: float
    address: str
    user_agent: str
