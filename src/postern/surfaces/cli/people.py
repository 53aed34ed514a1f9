"""`postern users …`, `postern sessions …` and `postern audit`: who may sign in, who is, and who changed
what."""

import json
import sys
from typing import Annotated, Any

import typer

from postern.core.access.accounts import LEVELS
from postern.surfaces.cli.run import ACTOR, USAGE, Cursor, Json, Limit, end, report, session, show_page
from postern.surfaces.cli.webhooks import read_secret
from postern.usecases.access import accounts
from postern.usecases.access import audit as audit_trail
from postern.usecases.answers import whole

users = typer.Typer(no_args_is_help=True, help="Who may sign in to the console.")
sessions = typer.Typer(no_args_is_help=True, help="Who is signed in.")

UserId = Annotated[str, typer.Argument(metavar="USER", help="The user's id (usr_…).")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
A_LEVEL = f"{', '.join(LEVELS[:-1])} or {LEVELS[-1]}."


@users.command("list")
def list_users(as_json: Json = False) -> None:
    """The users, what they may do, when they last signed in."""
    found = session.run(lambda gateway: accounts.users(gateway, ACTOR))
    columns = ["id", "name", "level", "createdAt", "createdBy", "lastSignedInAt"]
    show_page(whole(found), as_json, columns, "No user yet; the first start of the gateway makes one.")


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
    made = session.run(lambda gateway: accounts.create_user(gateway, ACTOR, name, secret, level))
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
    done = session.run(lambda gateway: accounts.change_user(gateway, ACTOR, user, level, secret))
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
    session.run(lambda gateway: accounts.delete_user(gateway, ACTOR, user))
    report({"deleted": user}, "Deleted.", as_json)


@sessions.command("list")
def list_sessions(as_json: Json = False) -> None:
    """Everybody's sessions in the console: from where, since when, when last used."""
    found = session.run(lambda gateway: accounts.sessions(gateway, ACTOR))
    show_page(
        whole(found),
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
    session.run(lambda gateway: accounts.revoke_session(gateway, ACTOR, session_id))
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
    page = session.run(lambda gateway: audit_trail.listing(gateway, ACTOR, limit, cursor, subject))
    show_page(
        page,
        as_json,
        ["at", "who", "did", "to", "changes"],
        "Nothing has been changed yet.",
        lambda one: [one.at, one.actor, one.action, one.subject, _changes(one.changes)],
    )


def _changes(changes: dict[str, Any]) -> str:
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
