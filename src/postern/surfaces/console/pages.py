"""Makes pages: templates that escape everything, and headers that let in nothing from elsewhere."""

import os
import re
from inspect import isfunction
from secrets import token_hex
from typing import Any

from jinja2 import Environment, FileSystemBytecodeCache, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse

from postern.surfaces.console import bodies, words
from postern.surfaces.console.assets import FOLDER, asset, icon

# Payloads of strangers are shown on these pages: no inline script, nothing from elsewhere, in nobody's frame.
POLICY = "; ".join(
    [
        "default-src 'self'",
        "script-src 'self'",
        "style-src 'self'",
        "font-src 'self'",
        "img-src 'self' data:",
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    ]
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}

# Sentences that a page says after it did something. The URL carries the word, never the sentence: nobody else writes
# on our pages.
NOTICES = {
    "saved": "Saved. It applies from the next call on.",
    "merged": "Saved, together with what somebody else changed meanwhile: you changed different things.",
    "scheduled": "Saved. The next fetch goes by it.",
    "created": "The webhook is ready.",
    "to-schedule": "The webhook is there. Say when it fetches, and which headers it sends.",
    "enabled": "The webhook accepts calls again.",
    "disabled": "The webhook now rejects calls with 403.",
    "held": "On hold: calls are checked and stored as usual, and their workflows wait until you release them.",
    "released": "Released: what waited is started now, the oldest first.",
    "out-of-turn": "It starts now, out of its turn.",
    "dropped": "Dropped: what waited is not started. Each call stays in the history and can be replayed.",
    "deleted": "Deleted: its URL answers 404. For seven days it can be restored from the bin.",
    "restored": "Restored, as it was. Its URL leads to it again.",
    "gone-for-good": "Deleted for good. Its URL will never be given out again.",
    "promoted": "The second secret is now the main one.",
    "replayed": "Replayed with the recorded payload: what becomes of it is shown below.",
    "replayed-before": "It was replayed meanwhile, and was not started once more: what became of it is shown below.",
    "replay-held": "Replayed: the webhook is on hold, so its workflow waits with the others.",
    "replayed-to-listener": "Handed to the listener: how its program answers is shown below.",
    "replayed-edited": "Made: what becomes of it is shown below. The call that it was made of stays as it came.",
    "replayed-edited-held": "Made. The webhook is on hold, so its workflow waits with the others.",
    "marked": "Bookmarked. The list shows bookmarked calls with its filter.",
    "unmarked": "No longer bookmarked.",
    "mapped": "Mapped. The next call carries the value.",
    "subscribed": "The subscription is confirmed. The topic's messages come here from now on.",
    "fixed": "The fix is applied. Calls are judged by it from now on.",
    "admitted": "Admitted: the call was checked again and accepted. Its progress is shown below.",
    "admitted-held": "Admitted: the call was checked again and accepted. The webhook is on hold, so its workflow waits.",
    "channel-added": "The channel is added. Send it a test.",
    "channel-deleted": "The channel is deleted. It hears of nothing any more.",
    "key-deleted": "The API key is deleted and no longer opens anything.",
    "user-added": "The user can sign in now.",
    "user-removed": "The user is removed and signed out everywhere.",
    "password-changed": "The password is changed. Other sessions of this user are signed out.",
    "view-saved": "Saved: the view is a tab of the page Calls, and in Find.",
    "view-renamed": "The view has its new name.",
    "view-deleted": "The view is deleted.",
    "acknowledged": "Acknowledged: nobody is reminded of it any more. It closes by itself when all is well.",
    "cancelled": "Cancelled. Calls replayed before stay replayed.",
}

UNDO = {
    "disabled": "/webhooks/{}/enable",
    "held": "/webhooks/{}/release",
    "deleted": "/bin/{}/restore",
}
"""The address of the form that undoes what a notice tells, by notice."""
is_webhook_id = re.compile(r"wh_[0-9a-f]{32}").fullmatch


def _compiled() -> FileSystemBytecodeCache | None:
    """Keeps compiled templates beside their sources, as Python does. None where that folder cannot be written."""
    folder = FOLDER / "templates" / "__pycache__"
    try:
        folder.mkdir(exist_ok=True)
    except OSError:
        return None
    return FileSystemBytecodeCache(str(folder)) if os.access(folder, os.W_OK) else None


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        bytecode_cache=_compiled(),
        auto_reload=False,
    )
    environment.globals.update(asset=asset, icon=icon, words=words, token_hex=token_hex)
    filters = {name: function for name, function in vars(words).items() if isfunction(function)}
    environment.filters.update(filters, readable=bodies.readable)
    return environment


ENVIRONMENT = _environment()


def page(
    request: Request, template: str, status: int = 200, headers: dict[str, str] | None = None, **context: Any
) -> HTMLResponse:
    # The browser's way back leads to what was done before, where it may no longer be so.
    said = request.query_params.get("notice", "") if status < 400 else ""
    of = request.query_params.get("of", "")
    theme = request.cookies.get("theme", "")
    shown = {
        "actor": None,
        "notice": NOTICES.get(said),
        "undo": UNDO[said].format(of) if said in UNDO and is_webhook_id(of) else None,
        "problem": None,
        "errors": {},
        "values": {},
        "names": {},
        "after": None,
        "kept": "",
        "theme": theme if theme in ("light", "dark") else "system",
        "utc": request.cookies.get("times") == "utc",
        "here": request.url.path,
        "request": request,
        **context,
    }
    html = ENVIRONMENT.get_template(template).render(shown)
    # JSON may name half a character ("\\ud83d"), which no page can hold.
    return HTMLResponse(html.encode(errors="replace"), status, HEADERS | (headers or {}))
