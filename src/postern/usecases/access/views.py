"""Answers about keys, users, sessions and the audit log."""

from postern.core.access import accounts
from postern.core.access.accounts import ApiKey as ApiKey
from postern.core.access.accounts import Level
from postern.core.access.audit import AuditEntry as AuditEntry
from postern.usecases.answers import Time, View, shown


class NewApiKey(ApiKey, frozen=True, rename="camel"):
    """Only this answer holds the key itself."""

    key: str

    def __repr__(self) -> str:
        return f"NewApiKey({self.id})"


class User(View):
    id: str
    name: str
    level: Level
    created_at: Time
    created_by: str
    last_signed_in_at: Time | None
    invited_until: Time | None


class NewUser(User):
    """``invitation``: the link with which they choose a password, once. Only this answer holds it."""

    invitation: str | None

    def __repr__(self) -> str:
        return f"NewUser({self.id})"


class Me(View):
    name: str
    level: Level
    user_id: str | None
    session_id: str | None


class Session(View):
    id: str
    user_id: str
    user: str
    created_at: Time
    last_seen_at: Time
    address: str
    user_agent: str
    current: bool


def session_of(session: accounts.Session, user: accounts.User, asking: accounts.Actor) -> Session:
    is_own = session.id == asking.session
    return shown(Session, session, user=user.name, last_seen_at=Time(session.seen_at), current=is_own)


def me(actor: accounts.Actor) -> Me:
    return Me(
        name=actor.name,
        level=actor.level,
        user_id=actor.id if actor.session else None,
        session_id=actor.session or None,
    )
