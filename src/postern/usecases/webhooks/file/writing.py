"""What the file says of a webhook: all that differs from the defaults, and of secrets where to look for them."""

import re

from postern.core.documents import Document
from postern.core.webhooks.settings import without_defaults
from postern.core.webhooks.stored import StoredWebhook
from postern.identity import is_stand_in
from postern.usecases.webhooks.requests import SECRETS

_NAMES = {"main": "", "second": "SECOND_", "verifyToken": "VERIFY_"}


def written(webhook: StoredWebhook, taken: set[str]) -> Document:
    settings = without_defaults(webhook.settings)
    authentication = settings["authentication"]
    for name, kept in SECRETS[authentication["method"]].items():
        if kept in webhook.secrets:
            kind = "TOKEN" if authentication["method"] == "token" or kept == "verifyToken" else "SECRET"
            if is_stand_in(webhook.secrets[kept].value):
                # A name to look under would promise a secret that nobody has.
                authentication[name] = {"generate": True}
            else:
                authentication[name] = {"env": _variable(webhook, _NAMES[kept] + kind, taken)}
    if webhook.settings.schedule is not None and webhook.settings.schedule.headers:
        settings["schedule"]["headers"] = {
            name: {"env": _variable(webhook, f"HEADER_{name}", taken)}
            for name in webhook.settings.schedule.headers
        }
    switched_off = {} if webhook.enabled else {"enabled": False}
    return {"name": settings.pop("name"), "id": webhook.id, **switched_off, **settings}


def _variable(webhook: StoredWebhook, what: str, taken: set[str]) -> str:
    stem, end = (re.sub(r"[^A-Z0-9]+", "_", text.upper()).strip("_") for text in (webhook.name, what))
    if not stem[:1].isalpha() or stem.startswith("POSTERN"):
        # The program's own settings begin with POSTERN_, and it refuses those it does not know.
        stem = f"WEBHOOK_{stem}".rstrip("_")
    name = f"{stem}_{end}"
    if name in taken:
        name = f"{name}_{webhook.id[-6:].upper()}"
    taken.add(name)
    return name
