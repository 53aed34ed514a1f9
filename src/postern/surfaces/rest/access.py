"""Keys, users, sessions and the audit trail over HTTP."""

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from postern.core.access.accounts import Actor, Level
from postern.surfaces import session
from postern.surfaces.rest.framework.operation import JSON, PREFIX, OnePage, Rows, ShortText
from postern.usecases.access import accounts, audit, views
from postern.usecases.answers import as_json
from postern.usecases.runtime.gateway import Gateway
from postern.usecases.shapes import Shape

row = Rows("Access")


class AuditQuery(OnePage):
    subject: ShortText | None = Field(default=None, description="The id of what was changed.")


class ApiKeyRequest(Shape):
    name: str = Field(min_length=1, max_length=200)
    level: Level


class UserRequest(Shape):
    name: str = Field(min_length=1, max_length=80)
    password: str | None = Field(
        None, min_length=8, max_length=256, repr=False, description="Left out: they are invited by a link."
    )
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


row.of(accounts.keys, "list_api_keys", "GET", "/api-keys", "List API keys", level="admin")
row.of(
    accounts.create_key, "create_api_key", "POST", "/api-keys", "Make an API key",
    level="admin", body=ApiKeyRequest, status=201, place="api-keys", idempotent=True,
)  # fmt: skip
row.of(
    accounts.delete_key, "delete_api_key", "DELETE", "/api-keys/{key_id}", "Delete an API key",
    level="admin", status=204,
)  # fmt: skip
row.of(audit.listing, "list_audit", "GET", "/audit", "List changes", level="admin", query=AuditQuery)
row.of(accounts.users, "list_users", "GET", "/users", "List users", level="admin")
row.of(
    accounts.create_user, "create_user", "POST", "/users", "Make a user",
    level="admin", body=UserRequest, status=201, place="users", idempotent=True,
)  # fmt: skip
row.of(accounts.user, "show_user", "GET", "/users/{user_id}", "Show a user", level="admin")
row.of(
    accounts.change_user, "change_user", "PATCH", "/users/{user_id}", "Change a user",
    level="admin", body=UserChange, refuses=("conflict",),
)  # fmt: skip
row.of(
    accounts.delete_user, "delete_user", "DELETE", "/users/{user_id}", "Delete a user",
    level="admin", status=204, refuses=("conflict",),
)  # fmt: skip


@row(
    "POST", "/sessions", "Sign in",
    level=None, status=201, answers=views.Me, refuses=("not_authenticated", "access_denied", "rate_limited"),
)  # fmt: skip
async def sign_in(gateway: Gateway, request: Request, body: SignIn) -> Response:
    """The session is in the cookie of the answer."""
    session.check_origin_of_stranger(gateway, request)
    secret = await session.sign_in(gateway, request, body.name, body.password)
    me = views.me(await accounts.actor_of_session(gateway, secret))
    response = Response(as_json(me), 201, {"location": f"{PREFIX}/me"}, JSON)
    session.remember(gateway, response, body.name, secret)
    return response


row.of(accounts.sessions, "list_sessions", "GET", "/sessions", "List sessions", refuses=("access_denied",))


@row("DELETE", "/sessions/{session_id}", "End a session", level="read", answers=None, status=204)
async def end_session(gateway: Gateway, actor: Actor, session_id: str) -> Response:
    """The id ``current`` is the session that asks: signing out."""
    mine = session_id in ("current", actor.session)
    await accounts.revoke_session(gateway, actor, (actor.session or "none") if mine else session_id)
    response = Response(status_code=204)
    if mine:
        session.forget(response)
    return response


@row("GET", "/me", "Who am I")
async def show_me(actor: Actor) -> views.Me:
    return views.me(actor)


row.of(
    accounts.change_own_password, "change_own_password", "POST", "/me/password", "Change one's own password",
    level="read", body=PasswordChange, status=204, refuses=("rate_limited",),
)  # fmt: skip
