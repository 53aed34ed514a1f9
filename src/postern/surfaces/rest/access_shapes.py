"""What the API answers about keys, users, sessions and changes."""

from typing import Any

from pydantic import Field

from postern.core.access.accounts import Level
from postern.surfaces.rest.shapes import Told
from postern.usecases.shapes import Shape


class ApiKeyRequest(Shape):
    name: str = Field(min_length=1, max_length=200)
    level: Level


class ApiKey(Told):
    id: str
    name: str
    level: Level
    prefix: str
    created_at: str
    created_by: str
    last_used_at: str | None


class NewApiKey(ApiKey):
    """The key itself is in this answer and nowhere else, ever."""

    key: str = Field(repr=False)


class UserRequest(Shape):
    name: str = Field(min_length=1, max_length=80)
    password: str = Field(min_length=8, max_length=256, repr=False)
    level: Level


class UserChange(Shape):
    level: Level | None = None
    password: str | None = Field(None, min_length=8, max_length=256, repr=False)


class User(Told):
    id: str
    name: str
    level: Level
    created_at: str
    created_by: str
    last_signed_in_at: str | None


class SignIn(Shape):
    name: str = Field(max_length=200)
    password: str = Field(max_length=1024, repr=False)


class Me(Told):
    name: str
    level: Level
    user_id: str | None
    session_id: str | None


class PasswordChange(Shape):
    old_password: str = Field(max_length=1024, repr=False)
    new_password: str = Field(min_length=8, max_length=256, repr=False)


class Session(Told):
    id: str
    user_id: str
    user: str
    created_at: str
    last_seen_at: str
    address: str
    user_agent: str
    current: bool


class AuditEntry(Told):
    id: str
    at: str
    actor: str
    level: Level
    action: str
    subject: str
    changes: dict[str, Any]
