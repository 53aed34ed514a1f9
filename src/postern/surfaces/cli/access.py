"""`postern keys`, `users`, `sessions` and `audit`: API keys, users and their sessions, and the audit trail."""

import json
from typing import Any

import click

from postern.core.access.accounts import LEVELS
from postern.core.access.audit import AuditedChanges
from postern.surfaces.cli.files import read_or_ask, read_secret
from postern.surfaces.cli.gateway.api import api
from postern.surfaces.cli.options import Choice, Group, command, limit_option
from postern.surfaces.cli.run import confirm, end, report, show_page
from postern.usecases.access.views import ApiKey, AuditEntry, NewApiKey, NewUser, Session, User
from postern.usecases.answers import Listing

keys = Group("keys", help="API keys.")
users = Group("users", help="Who may sign in to the console.")
sessions = Group("sessions", help="Who is signed in.")

A_LEVEL = f"{', '.join(LEVELS[:-1])} or {LEVELS[-1]}."


@keys.command("create")
@click.argument("name", help="What or whom it is for.")
@click.option("--level", type=Choice(LEVELS), default="read", help="read, write or admin.")
def create_key(name: str, level: str) -> None:
    """Make an API key. It is shown now and never again."""
    made = api.post(NewApiKey, "api-keys", body={"name": name, "level": level})
    report(made, made.key)


@keys.command("list")
def list_keys() -> None:
    """List the API keys: names, access levels, last use."""
    page = api.get(Listing[ApiKey], "api-keys")
    columns = ["id", "name", "level", "prefix", "createdAt", "lastUsedAt"]
    show_page(page, "No API key yet: postern keys create NAME", columns)


@keys.command("delete")
@click.argument("key", help="The key's id (key_…).")
def delete_key(key: str) -> None:
    """Revoke an API key at once."""
    api.delete("api-keys", key)
    report({"deleted": key}, "Revoked.")


@users.command("list")
def list_users() -> None:
    """List the users: access levels, last sign-in."""
    page = api.get(Listing[User], "users")
    columns = ["id", "name", "level", "createdAt", "createdBy", "lastSignedInAt", "invitedUntil"]
    show_page(page, "No user yet; the first start of the gateway makes one.", columns)


@users.command("create")
@click.argument("name", help="What they sign in as.")
@click.option("--level", type=Choice(LEVELS), default="read", help=A_LEVEL)
@click.option("--password", help="env:NAME, file:PATH or -. Left out: asked for.")
@click.option(
    "--invite", is_flag=True, help="Make a link by which they choose a password, once, within seven days."
)
def create_user(name: str, level: str, password: str | None, invite: bool) -> None:
    """Let somebody sign in to the console.

    Example:

      PASSWORD=… postern users create maria --level write --password env:PASSWORD
    """
    if invite and password is not None:
        end("say --invite or --password")
    secret = None if invite else read_or_ask(password, "--password", "Password", twice=True)
    made = api.post(NewUser, "users", body={"name": name, "password": secret, "level": level})
    how = f" by this link, until {made.invited_until}: {made.invitation}" if invite else f": {made.id}"
    report(made, f"{made.name} may sign in, with access level {made.level}{how}")


@users.command("change")
@click.option("--level", type=Choice(LEVELS), help=A_LEVEL)
@click.option("--password", help="env:NAME, file:PATH or -. Ends the user's sessions.")
def change_user(user: str, level: str | None, password: str | None) -> None:
    """Give a user another access level or a new password. This is also the way back in when the password of
    `admin` is lost."""
    if level is None and password is None:
        end("say --level or --password")
    secret = None if password is None else read_secret(password)
    changes = {"level": level, "password": secret}
    done = api.patch(
        User, "users", user, body={name: value for name, value in changes.items() if value is not None}
    )
    report(
        done, f"{done.name} has access level {done.level}{'; the new password holds now' if secret else ''}."
    )


@users.command("delete")
def delete_user(user: str, yes: bool) -> None:
    """Remove a user and end their sessions. The last admin stays."""
    confirm("They can no longer sign in. Delete the user?", yes)
    api.delete("users", user)
    report({"deleted": user}, "Deleted.")


@sessions.command("list")
def list_sessions() -> None:
    """List the console's sessions: user, browser, start, last use."""
    page = api.get(Listing[Session], "sessions")
    columns = ["id", "user", "createdAt", "lastSeenAt", "address", "userAgent"]
    show_page(page, "Nobody is signed in.", columns)


@sessions.command("revoke")
@click.argument("session_id", metavar="SESSION", help="The session's id (ses_…).")
def revoke_session(session_id: str) -> None:
    """Sign a session out; its next request is refused."""
    api.delete("sessions", session_id)
    report({"revoked": session_id}, "Signed out.")


@command()
@click.option("--subject", help="Only what was done to this webhook, user, key … (its id).")
@limit_option(50)
def audit(subject: str | None, limit: int, cursor: str | None) -> None:
    """List who changed what, newest first. It shows that a secret was set, never the secret."""
    page = api.get(Listing[AuditEntry], "audit", limit=limit, cursor=cursor, subject=subject)
    show_page(
        page,
        "Nothing has been changed yet.",
        {
            "at": "at",
            "who": "actor",
            "did": "action",
            "to": "subject",
            "changes": lambda entry: _changes(entry.changes),
        },
    )


def _changes(changes: AuditedChanges) -> str:
    def in_words(change: Any) -> str:
        if isinstance(change, dict) and change.keys() == {"before", "after"}:
            return f"{json.dumps(change['before'], ensure_ascii=False)} → {json.dumps(change['after'], ensure_ascii=False)}"
        return change if isinstance(change, str) else json.dumps(change, ensure_ascii=False)

    return ", ".join(f"{name}: {in_words(change)}" for name, change in changes.items())
