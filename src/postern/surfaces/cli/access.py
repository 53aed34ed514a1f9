"""`postern keys …`, `postern users …`, `postern sessions …` and `postern audit`: who may ask for something, who may
sign in, who is, and who changed what."""

import json
import sys
from typing import Annotated, Any

import typer

from postern.core.access.accounts import LEVELS
from postern.core.access.audit import Changes
from postern.surfaces.cli.gateway.api import api
from postern.surfaces.cli.run import USAGE, Cursor, Json, Limit, end, report, show_page
from postern.surfaces.cli.secret import read_secret
from postern.usecases.access.views import ApiKey, AuditEntry, NewApiKey, Session, User
from postern.usecases.answers import Listing

keys = typer.Typer(no_args_is_help=True, help="API keys.")
users = typer.Typer(no_args_is_help=True, help="Who may sign in to the console.")
sessions = typer.Typer(no_args_is_help=True, help="Who is signed in.")

UserId = Annotated[str, typer.Argument(metavar="USER", help="The user's id (usr_…).")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
A_LEVEL = f"{', '.join(LEVELS[:-1])} or {LEVELS[-1]}."


@keys.command("create")
def create_key(
    name: Annotated[str, typer.Argument(help="What or whom it is for.")],
    level: Annotated[str, typer.Option(help="read, write or admin.")] = "read",
    as_json: Json = False,
) -> None:
    """Make an API key. It is shown now and never again."""
    if level not in LEVELS:
        end(f"--level: choose one of {', '.join(LEVELS)}", USAGE)
    made = api.post(NewApiKey, "api-keys", body={"name": name, "level": level})
    report(made, made.key, as_json)


@keys.command("list")
def list_keys(as_json: Json = False) -> None:
    """The API keys: what they are for, what they may do, when they were last used."""
    found = api.get(Listing[ApiKey], "api-keys")
    columns = ["id", "name", "level", "prefix", "createdAt", "lastUsedAt"]
    show_page(found, as_json, columns, "No API key yet: postern keys create NAME")


@keys.command("delete")
def delete_key(
    key: Annotated[str, typer.Argument(help="The key's id (key_…).")], as_json: Json = False
) -> None:
    """Revoke an API key at once."""
    api.delete("api-keys", key)
    report({"deleted": key}, "Revoked.", as_json)


@users.command("list")
def list_users(as_json: Json = False) -> None:
    """The users, what they may do, when they last signed in."""
    found = api.get(Listing[User], "users")
    columns = ["id", "name", "level", "createdAt", "createdBy", "lastSignedInAt"]
    show_page(found, as_json, columns, "No user yet; the first start of the gateway makes one.")


@users.command("create")
def create_user(
    name: Annotated[str, typer.Argument(help="What they sign in as.")],
    level: Annotated[str, typer.Option(help=A_LEVEL)] = "read",
    password: Annotated[
        str | None, typer.Option(help="env:NAME, file:PATH or -. Left out: asked for.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Let somebody sign in to the console.

    Example:

      PASSWORD=… postern users create maria --level write --password env:PASSWORD
    """
    secret = _password(password)
    made = api.post(User, "users", body={"name": name, "password": secret, "level": level})
    report(made, f"{made.name} may sign in, with access level {made.level}: {made.id}", as_json)


@users.command("change")
def change_user(
    user: UserId,
    level: Annotated[str | None, typer.Option(help=A_LEVEL)] = None,
    password: Annotated[
        str | None, typer.Option(help="env:NAME, file:PATH or -. Ends the user's sessions.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Give a user another access level or a new password. This is also the way back in when the password of
    `admin` is lost."""
    if level is None and password is None:
        end("say --level or --password", USAGE)
    secret = None if password is None else _password(password)
    wanted = {"level": level, "password": secret}
    done = api.patch(User, "users", user, body={name: one for name, one in wanted.items() if one is not None})
    report(
        done,
        f"{done.name} has access level {done.level}{'; the new password holds now' if secret else ''}.",
        as_json,
    )


@users.command("delete")
def delete_user(user: UserId, yes: Yes = False, as_json: Json = False) -> None:
    """Remove a user and end their sessions. The last admin stays."""
    if not yes and not as_json:
        typer.confirm("They can no longer sign in. Delete the user?", abort=True)
    api.delete("users", user)
    report({"deleted": user}, "Deleted.", as_json)


@sessions.command("list")
def list_sessions(as_json: Json = False) -> None:
    """Everybody's sessions in the console: from where, since when, when last used."""
    found = api.get(Listing[Session], "sessions")
    show_page(
        found,
        as_json,
        ["id", "user", "createdAt", "lastSeenAt", "address", "userAgent"],
        "Nobody is signed in.",
    )


@sessions.command("revoke")
def revoke_session(
    session_id: Annotated[str, typer.Argument(metavar="SESSION", help="The session's id (ses_…).")],
    as_json: Json = False,
) -> None:
    """Sign a session out; its next request is refused."""
    api.delete("sessions", session_id)
    report({"revoked": session_id}, "Signed out.", as_json)


def audit(
    subject: Annotated[
        str | None, typer.Option(help="Only what was done to this webhook, user, key … (its id).")
    ] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    as_json: Json = False,
) -> None:
    """Who changed what, newest first. No secret is in it: of one it only says that it was set."""
    page = api.get(Listing[AuditEntry], "audit", limit=limit, cursor=cursor, subject=subject)
    show_page(
        page,
        as_json,
        ["at", "who", "did", "to", "changes"],
        "Nothing has been changed yet.",
        lambda one: [one.at, one.actor, one.action, one.subject, _changes(one.changes)],
    )


def _changes(changes: Changes) -> str:
    def in_words(change: Any) -> str:
        if isinstance(change, dict) and change.keys() == {"before", "after"}:
            return f"{json.dumps(change['before'], ensure_ascii=False)} → {json.dumps(change['after'], ensure_ascii=False)}"
        return change if isinstance(change, str) else json.dumps(change, ensure_ascii=False)

    return ", ".join(f"{name}: {in_words(change)}" for name, change in changes.items())


def _password(source: str | None) -> str:
    if source is not None:
        return read_secret(source)
    if not sys.stdin.isatty():
        end("--password: write env:NAME, file:PATH or - (standard input)", USAGE)
    asked: str = typer.prompt("Password", hide_input=True, confirmation_prompt=True)
    return asked
