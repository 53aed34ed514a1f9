"""The gateway's own settings: who may do what, what was changed, and how other programs connect."""

import re
from typing import Any

from starlette.responses import Response

from postern.core.access.accounts import Actor
from postern.core.problems import Refused
from postern.core.watch.channels import ChannelKind
from postern.core.webhooks.listing import WebhookFilter
from postern.settings import EngineName
from postern.surfaces.console import words
from postern.surfaces.console.labels import changes_of
from postern.surfaces.console.views import picker
from postern.surfaces.console.visit import Visit, deed, messages_of, told_of
from postern.usecases.access import accounts, audit
from postern.usecases.alarms import channels as alarm_channels
from postern.usecases.alarms import telling
from postern.usecases.operations import retention, settings
from postern.usecases.operations.engine import state as engine_state
from postern.usecases.webhooks import listing, picking

TABS = [
    ("", "API keys"),
    ("users", "Users"),
    ("sessions", "Sessions"),
    ("connect", "Connect"),
    ("channels", "Channels"),
    ("retention", "Retention"),
    ("engine", "Engine"),
    ("environment", "All settings"),
    ("audit", "Audit log"),
    ("password", "Password"),
]
RETENTION = ("POSTERN_HISTORY_DAYS", "POSTERN_BODY_DAYS", "POSTERN_HISTORY_ROWS")
ENGINE_SETTINGS: dict[EngineName, str] = {
    "embedded": "POSTERN_WORKFLOWS",
    "temporal": "POSTERN_TEMPORAL_",
    "restate": "POSTERN_RESTATE_",
    "dbos": "POSTERN_DBOS_",
    "http": "POSTERN_HTTP_",
    "shopify-flow": "POSTERN_SHOPIFY_",
    "none": "POSTERN_NO_ENGINE_",
}
"""The beginning of the variables of each engine's settings."""
CHANNEL_KINDS: dict[ChannelKind, str] = {
    "slack": "Slack",
    "teams": "Microsoft Teams",
    "discord": "Discord",
    "mailto": "Mail",
    "ntfy": "ntfy",
    "telegram": "Telegram",
    "webhook": "A webhook of yours",
}
LEVELS = [
    ("read", "Read: look at everything"),
    ("write", "Write: change webhooks, replay"),
    ("admin", "Admin: keys and users too"),
]
_ID = re.compile(r"[a-z]{2,5}_[0-9a-f]{32}")


def tabs_of(actor: Actor) -> list[tuple[str, str]]:
    own = ("sessions", "connect", "channels", "retention", "password")
    return [tab for tab in TABS if actor.may("admin") or tab[0] in own]


def _page(visit: Visit, name: str, status: int = 200, **context: Any) -> Response:
    known = {"tab": name, "tabs": tabs_of(visit.actor), "levels": LEVELS}
    return visit.page(f"settings/{name or 'keys'}.html", status, **known | context)


async def keys(visit: Visit, status: int = 200, **context: Any) -> Response:
    if not visit.actor.may("admin"):
        return visit.to("/settings/connect")
    return _page(visit, "", status, keys=await visit.ask(accounts.keys), **({"made": None} | context))


async def make_key(visit: Visit) -> Response:
    """The one answer that holds the key: shown on this page, not redirected to, so that it is never in an
    address."""
    form = await visit.form()
    try:
        made = await visit.ask(accounts.create_key, form.text("name"), form.text("level"))
    except Refused as refused:
        if not refused.errors:
            raise
        return await keys(visit, refused.problem.status, errors=messages_of(refused), values=form)
    return await keys(visit, made=made)


delete_key = deed(accounts.delete_key, "key", "/settings", "key-deleted")


async def users(visit: Visit, status: int = 200, **context: Any) -> Response:
    return _page(visit, "users", status, users=await visit.ask(accounts.users), **({"made": None} | context))


async def add_user(visit: Visit) -> Response:
    """The one answer that holds the link of an invitation."""
    form = await visit.form()
    try:
        made = await visit.ask(
            accounts.create_user, form.text("name"), form.get("password") or None, form.text("level")
        )
    except Refused as refused:
        return await users(visit, refused.problem.status, values=form, **told_of(refused))
    return await users(visit, made=made) if made.invitation else visit.to("/settings/users", "user-added")


async def change_user(visit: Visit) -> Response:
    form = await visit.form()
    await visit.ask(
        accounts.change_user, visit.at("user"), form.text("level") or None, form.get("password") or None
    )
    return visit.to("/settings/users", "saved")


remove_user = deed(accounts.delete_user, "user", "/settings/users", "user-removed")


async def sessions(visit: Visit) -> Response:
    return _page(visit, "sessions", sessions=await visit.ask(accounts.sessions))


end_session = deed(accounts.revoke_session, "session", "/settings/sessions")


async def channels(visit: Visit, status: int = 200, **context: Any) -> Response:
    listed = await visit.ask(alarm_channels.listing)
    folders = await visit.ask(listing.folders, WebhookFilter())
    known: dict[str, Any] = {
        "channels": listed.items,
        "kinds": [*CHANNEL_KINDS.items()],
        "folders": [("", "All"), *((folder.name, folder.name) for folder in folders if folder.name)],
    }
    typed = context.get("values", {}).get("webhook", "")
    known |= {"tried": (), "picked": await picker.picked(visit, typed)}
    return _page(visit, "channels", status, **known | context)


async def add_channel(visit: Visit) -> Response:
    form = await visit.form()
    kind, address, after = form.text("kind"), form.text("address").strip(), form.text("after").strip()
    whole = f"mailto:{address}" if kind == "mailto" else f"{kind}+{address}{'#' if after else ''}{after}"
    try:
        webhook_id = await visit.ask(picking.meant, form.text("webhook"), field="webhook")
        await visit.ask(
            alarm_channels.add, whole if address else "", form.text("name"), webhook_id, form.text("folder")
        )
    except Refused as refused:
        return await channels(visit, refused.problem.status, values=form, **told_of(refused))
    return visit.to("/settings/channels", "channel-added")


async def test_channel(visit: Visit) -> Response:
    """Sends a test; the answer is the page with what became of it."""
    tried = await visit.ask(telling.test, visit.query.get("channel"))
    return await channels(visit, tried=tried.items)


delete_channel = deed(alarm_channels.delete, "channel", "/settings/channels", "channel-deleted")


async def retained(visit: Visit) -> Response:
    """Shows how long calls are kept, which settings decide it, and the last run of retention."""
    own = await visit.ask(listing.with_own_retention)
    listed = await visit.ask(settings.in_force) if visit.actor.may("admin") else []
    set_here = [setting for setting in listed if setting.variable in RETENTION]
    return _page(visit, "retention", kept=await visit.ask(retention.last), own=own, set_here=set_here)


async def engine(visit: Visit) -> Response:
    listed = await visit.ask(settings.in_force)
    chosen = next((setting.value for setting in listed if setting.variable == "POSTERN_ENGINE"), "none")
    engines = {
        name: (words.ENGINES[name], [setting for setting in listed if setting.variable.startswith(prefix)])
        for name, prefix in ENGINE_SETTINGS.items()
    }
    running = await visit.ask(engine_state)
    return _page(visit, "engine", chosen=chosen, engines=engines, health=running.health, listed=listed)


async def environment(visit: Visit) -> Response:
    return _page(visit, "environment", listed=await visit.ask(settings.in_force))


async def log(visit: Visit) -> Response:
    subject = visit.query.get("subject", "").strip()
    is_id = _ID.fullmatch(subject) is not None
    if not is_id:  # a webhook's name was typed
        subject = await visit.ask(picking.meant, subject, field="subject")
    page = await visit.ask(audit.listing, 50, visit.query.get("after"), subject or None)
    shown = [entry.subject for entry in page.items]
    return _page(
        visit,
        "audit",
        entries=page.items,
        after=page.next_cursor,
        subject=subject,
        picked=await picker.picked(visit, subject, deleted=True),
        names=await visit.ask(picking.names, shown, deleted=True),
        has_id=lambda text: _ID.fullmatch(text) is not None,
        living=await visit.ask(picking.names, shown),
        changes_of=changes_of,
    )


async def connect(visit: Visit) -> Response:
    return _page(visit, "connect")


async def password(visit: Visit) -> Response:
    return _page(visit, "password")


async def change_password(visit: Visit) -> Response:
    form = await visit.form()
    try:
        await visit.ask(
            accounts.change_own_password, form.get("oldPassword", ""), form.get("newPassword", "")
        )
    except Refused as refused:
        return _page(visit, "password", refused.problem.status, **told_of(refused))
    return visit.to("/settings/password", "password-changed")
