"""Keys, users, sessions and the audit trail over HTTP."""

from typing import Annotated

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from postern.core.access.accounts import Actor, Level
from postern.surfaces import session
from postern.surfaces.rest.framework.operation import JSON, PREFIX, OnePage, Rows, Text
from postern.usecases.access import accounts, audit, views
from postern.usecases.answers import Listing, as_json, whole
from postern.usecases.runtime.gateway import Gateway
from postern.usecases.shapes import Shape

row = Rows("Access")


class AuditQuery(OnePage):
    subject: Annotated[Text | None, Field(description="The id of what was changed.")] = None


class ApiKeyRequest(Shape):
    name: str = Field(min_length=1, max_length=200)
    level: Level


class UserRequest(Shape):
    name: str = Field(min_length=1, max_length=80)
    password: str = Field(min_length=8, max_length=256, repr=False)
    level: Level


class UserChange(Shape):
    level: Level | None = None
    password: str | None = Field(None, min_length=8, max_length=256, repr=False)


class SignIn(Shape):
    name: str = Field(max_length=200)
    password: str = Field(max_length=1024, repr=False)


class PasswordChange(Shape):
    old_password: str = Field(max_length=1024, repr=False)
    new_password: str = Field(min_length=8, max_length=256, repr=False)


@row("GET", "/api-keys", "List API keys", level="admin")
async def list_api_keys(gateway: Gateway, actor: Actor) -> Listing[views.ApiKey]:
    return whole(await accounts.keys(gateway, actor))


@row("POST", "/api-keys", "Make an API key", level="admin", status=201, place="api-keys", idempotent=True)
async def create_api_key(gateway: Gateway, actor: Actor, body: ApiKeyRequest) -> views.NewApiKey:
    return await accounts.create_key(gateway, actor, body.name, body.level)


@row("DELETE", "/api-keys/{key_id}", "Delete an API key", level="admin", status=204)
async def delete_api_key(gateway: Gateway, actor: Actor, key_id: str) -> None:
    await accounts.delete_key(gateway, actor, key_id)


@row("GET", "/audit", "List changes", level="admin")
async def list_audit(gateway: Gateway, actor: Actor, query: AuditQuery) -> Listing[views.AuditEntry]:
    return await audit.listing(gateway, actor, query.limit, query.cursor, query.subject)


@row("GET", "/users", "List users", level="admin")
async def list_users(gateway: Gateway, actor: Actor) -> Listing[views.User]:
    return whole(await accounts.users(gateway, actor))


@row("POST", "/users", "Make a user", level="admin", status=201, place="users", idempotent=True)
async def create_user(gateway: Gateway, actor: Actor, body: UserRequest) -> views.User:
    return await accounts.create_user(gateway, actor, body.name, body.password, body.level)


@row("GET", "/users/{user_id}", "Show a user", level="admin")
async def show_user(gateway: Gateway, actor: Actor, user_id: str) -> views.User:
    return await accounts.user(gateway, actor, user_id)


@row("PATCH", "/users/{user_id}", "Change a user", level="admin", refuses=("conflict",))
async def change_user(gateway: Gateway, actor: Actor, user_id: str, body: UserChange) -> views.User:
    """A new password ends the user's sessions."""
    return await accounts.change_user(gateway, actor, user_id, body.level, body.password)


@row("DELETE", "/users/{user_id}", "Delete a user", level="admin", status=204, refuses=("conflict",))
async def delete_user(gateway: Gateway, actor: Actor, user_id: str) -> None:
    """The last admin cannot be deleted."""
    await accounts.delete_user(gateway, actor, user_id)


@row(
    "POST", "/sessions", "Sign in",
    level=None, status=201, answers=views.Me, refuses=("not_authenticated", "access_denied", "rate_limited"),
)  # fmt: skip
async def sign_in(gateway: Gateway, request: Request, body: SignIn) -> Response:
    """The session is in the cookie of the answer."""
    session.check_origin_of_stranger(gateway, request)
    agent = request.headers.get("user-agent", "")
    browser = request.cookies.get(session.BROWSER_COOKIE, "")
    address = session.address_of(request)
    secret = await accounts.sign_in(gateway, body.name, body.password, address, agent, browser)
    me = views.me(await accounts.actor_of_session(gateway, secret))
    response = Response(as_json(me), 201, {"location": f"{PREFIX}/me"}, JSON)
    session.remember(gateway, response, body.name, secret)
    return response


@row("GET", "/sessions", "List sessions", level="read", refuses=("access_denied",))
async def list_sessions(gateway: Gateway, actor: Actor) -> Listing[views.Session]:
    """An admin sees everybody's, everybody else their own."""
    return whole(await accounts.sessions(gateway, actor))


@row("DELETE", "/sessions/{session_id}", "End a session", level="read", answers=None, status=204)
async def end_session(gateway: Gateway, actor: Actor, session_id: str) -> Response:
    """``current`` is the one that asks: signing out."""
    mine = session_id in ("current", actor.session)
    await accounts.revoke_session(gateway, actor, (actor.session or "none") if mine else session_id)
    response = Response(status_code=204)
    if mine:
        session.forget(response)
    return response


@row("GET", "/me", "Who am I", level="read")
async def show_me(actor: Actor) -> views.Me:
    return views.me(actor)


@row("POST", "/me/password", "Change one's own password", level="read", status=204, refuses=("rate_limited",))
async def change_own_password(gateway: Gateway, actor: Actor, body: PasswordChange) -> None:
    """Ends every other session of theirs."""
    await accounts.change_own_password(gateway, actor, body.old_password, body.new_password)
