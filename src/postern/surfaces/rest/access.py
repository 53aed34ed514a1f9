"""Keys, users, sessions and the audit trail over HTTP."""

from typing import Annotated, Any

from fastapi import Query
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from postern.surfaces import session
from postern.surfaces.rest import access_shapes, shapes
from postern.surfaces.rest.pages import Cursor, Limit, one_page, whole
from postern.surfaces.rest.table import PREFIX, Asking, Table
from postern.usecases.access import accounts, audit
from postern.usecases.runtime.gateway import Gateway


def made(thing: dict[str, Any], path: str) -> Response:
    return JSONResponse(thing, 201, {"location": f"{PREFIX}/{path}/{thing['id']}"})


def key_rows(table: Table, gateway: Gateway) -> None:
    row = table.of("Access").row

    @row("GET", "/api-keys", "List API keys", level="admin", answers=shapes.Listing[access_shapes.ApiKey])
    async def list_api_keys(actor: Asking) -> Any:
        return whole(await accounts.keys(gateway, actor))

    @row(
        "POST",
        "/api-keys",
        "Make an API key",
        level="admin",
        status=201,
        answers=access_shapes.NewApiKey,
        idempotent=True,
    )
    async def create_api_key(actor: Asking, request: access_shapes.ApiKeyRequest) -> Any:
        return made(await accounts.create_key(gateway, actor, request.name, request.level), "api-keys")

    @row("DELETE", "/api-keys/{key_id}", "Delete an API key", level="admin", status=204)
    async def delete_api_key(actor: Asking, key_id: str) -> Any:
        await accounts.delete_key(gateway, actor, key_id)
        return Response(status_code=204)

    @row("GET", "/audit", "List changes", level="admin", answers=shapes.Listing[access_shapes.AuditEntry])
    async def list_audit(
        actor: Asking,
        limit: Limit = 50,
        cursor: Cursor = None,
        subject: Annotated[
            str | None, Query(max_length=80, description="The id of what was changed.")
        ] = None,
    ) -> Any:
        page = await audit.listing(gateway, actor, limit, cursor, subject)
        return one_page(page)


def user_rows(table: Table, gateway: Gateway) -> None:
    row = table.of("Access").row

    @row("GET", "/users", "List users", level="admin", answers=shapes.Listing[access_shapes.User])
    async def list_users(actor: Asking) -> Any:
        return whole(await accounts.users(gateway, actor))

    @row(
        "POST",
        "/users",
        "Make a user",
        level="admin",
        status=201,
        answers=access_shapes.User,
        idempotent=True,
    )
    async def create_user(actor: Asking, request: access_shapes.UserRequest) -> Any:
        return made(
            await accounts.create_user(gateway, actor, request.name, request.password, request.level), "users"
        )

    @row("GET", "/users/{user_id}", "Show a user", level="admin", answers=access_shapes.User)
    async def show_user(actor: Asking, user_id: str) -> Any:
        return JSONResponse(await accounts.user(gateway, actor, user_id))

    @row(
        "PATCH",
        "/users/{user_id}",
        "Change a user",
        level="admin",
        answers=access_shapes.User,
        refuses=("conflict",),
    )
    async def change_user(actor: Asking, user_id: str, change: access_shapes.UserChange) -> Any:
        """A new password ends the user's sessions."""
        return JSONResponse(
            await accounts.change_user(gateway, actor, user_id, change.level, change.password)
        )

    @row("DELETE", "/users/{user_id}", "Delete a user", level="admin", status=204, refuses=("conflict",))
    async def delete_user(actor: Asking, user_id: str) -> Any:
        """The last admin cannot be deleted."""
        await accounts.delete_user(gateway, actor, user_id)
        return Response(status_code=204)


def session_rows(table: Table, gateway: Gateway) -> None:
    row = table.of("Access").row

    @row(
        "POST", "/sessions", "Sign in",
        level=None, status=201, answers=access_shapes.Me, refuses=("not_authenticated", "access_denied", "rate_limited"),
    )  # fmt: skip
    async def sign_in(request: Request, who: access_shapes.SignIn) -> Any:
        """The session is in the cookie of the answer."""
        session.check_origin_of_stranger(gateway, request)
        agent, browser = (
            request.headers.get("user-agent", ""),
            request.cookies.get(session.BROWSER_COOKIE, ""),
        )
        address = session.address_of(request)
        secret = await accounts.sign_in(gateway, who.name, who.password, address, agent, browser)
        actor = await accounts.actor_of_session(gateway, secret)
        response = JSONResponse(me(actor), 201, {"location": f"{PREFIX}/me"})
        session.remember(gateway, response, who.name, secret)
        return response

    @row(
        "GET",
        "/sessions",
        "List sessions",
        level="read",
        answers=shapes.Listing[access_shapes.Session],
        refuses=("access_denied",),
    )
    async def list_sessions(actor: Asking) -> Any:
        """An admin sees everybody's, everybody else their own."""
        return whole(await accounts.sessions(gateway, actor))

    @row("DELETE", "/sessions/{session_id}", "End a session", level="read", status=204)
    async def end_session(actor: Asking, session_id: str) -> Any:
        """``current`` is the one that asks: signing out."""
        mine = session_id in ("current", actor.session)
        await accounts.revoke_session(gateway, actor, (actor.session or "none") if mine else session_id)
        response = Response(status_code=204)
        if mine:
            session.forget(response)
        return response

    @row("GET", "/me", "Who am I", level="read", answers=access_shapes.Me)
    async def show_me(actor: Asking) -> Any:
        return JSONResponse(me(actor))

    @row(
        "POST",
        "/me/password",
        "Change one's own password",
        level="read",
        status=204,
        refuses=("rate_limited",),
    )
    async def change_own_password(actor: Asking, change: access_shapes.PasswordChange) -> Any:
        """Ends every other session of theirs."""
        await accounts.change_own_password(gateway, actor, change.old_password, change.new_password)
        return Response(status_code=204)


def me(actor: Any) -> dict[str, Any]:
    return {
        "name": actor.name,
        "level": actor.level,
        "userId": actor.id if actor.session else None,
        "sessionId": actor.session or None,
    }
