"""What is answered about keys, users, sessions and changes."""

from postern.core.access import accounts
from postern.core.access.accounts import Level
from postern.core.access.audit import AuditEntry as StoredEntry
from postern.core.access.audit import Changes
from postern.usecases.answers import Time, View


class ApiKey(View):
    id: str
    name: str
    level: Level
    prefix: str
    created_at: Time
    created_by: str
    last_used_at: Time | None


class NewApiKey(ApiKey):
    """The key itself is in this answer and nowhere else, ever."""

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


class AuditEntry(View):
    id: str
    at: Time
    actor: str
    level: Level
    action: str
    subject: str
    changes: Changes


def key_of(key: accounts.ApiKey) -> ApiKey:
    return ApiKey(
        id=key.id,
        name=key.name,
        level=key.level,
        prefix=key.prefix,
        created_at=Time(key.created_at),
        created_by=key.created_by,
        last_used_at=Time.maybe(key.last_used_at),
    )


def user_of(user: accounts.User) -> User:
    return User(
        id=user.id,
        name=user.name,
        level=user.level,
        created_at=Time(user.created_at),
        created_by=user.created_by,
        last_signed_in_at=Time.maybe(user.last_signed_in_at),
    )


def session_of(session: accounts.Session, user: accounts.User, asking: accounts.Actor) -> Session:
    return Session(
        id=session.id,
        user_id=user.id,
        user=user.name,
        created_at=Time(session.created_at),
        last_seen_at=Time(session.seen_at),
        address=session.address,
        user_agent=session.user_agent,
        current=session.id == asking.session,
    )


def entry_of(entry: StoredEntry) -> AuditEntry:
    return AuditEntry(
        id=entry.id,
        at=Time(entry.at),
        actor=entry.actor,
        level=entry.level,
        action=entry.action,
        subject=entry.subject,
        changes=entry.changes,
    )


def me(actor: accounts.Actor) -> Me:
    return Me(
        name=actor.name,
        level=actor.level,
        user_id=actor.id if actor.session else None,
        session_id=actor.session or None,
    )
