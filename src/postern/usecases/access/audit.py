"""The audit log: who changed what, and when."""

from collections.abc import Awaitable
from typing import Any

from postern.core.access.accounts import Actor
from postern.core.access.audit import AuditedChanges, AuditEntry
from postern.core.documents import Document
from postern.core.webhooks.settings import as_document
from postern.core.webhooks.stored import StoredWebhook
from postern.identity import new_id
from postern.usecases.answers import Listing, Time, first_page, page_size
from postern.usecases.runtime.gateway import Gateway, require

LONGEST_VALUE = 500


def noted(gateway: Gateway, actor: Actor, action: str, subject: str, **changes: Any) -> AuditEntry:
    """The entry for the transaction of a change. About a secret it is told only that it was set."""
    at = Time(gateway.clock())
    return AuditEntry(new_id("aud"), at, actor.name, actor.level, action, subject[:80], changes)


def note_down(gateway: Gateway, actor: Actor, action: str, subject: str, **changes: Any) -> Awaitable[None]:
    """Writes an entry by itself, for what changes no row."""
    return gateway.store.audit.write(noted(gateway, actor, action, subject, **changes))


def webhook_noted(
    gateway: Gateway,
    actor: Actor,
    action: str,
    after: StoredWebhook,
    before: StoredWebhook | None = None,
    secrets: dict[str, bytes | None] | None = None,
) -> AuditEntry:
    """The entry for a change of a webhook. It names the secrets that were set or removed, without their values."""
    changes = differences(_settings(before), _settings(after)) if before is not None else {"name": after.name}
    changes |= {
        f"secret.{field}": "removed" if value is None else "set" for field, value in (secrets or {}).items()
    }
    return noted(gateway, actor, action, after.id, **changes)


def _settings(webhook: StoredWebhook) -> Document:
    # The scheme that a preset resolves to is long, and follows from the settings and the preset's version.
    return {
        **as_document(webhook.settings),
        "enabled": webhook.enabled,
        "preset": webhook.resolved.preset_version,
    }


def differences(before: Document, after: Document, path: str = "") -> AuditedChanges:
    """Every field that differs, by its dotted path, with its value before and after."""
    changes: AuditedChanges = {}
    for name in sorted(before.keys() | after.keys()):
        was, is_now, here = before.get(name), after.get(name), f"{path}{name}"
        if isinstance(was, dict) and isinstance(is_now, dict):
            changes |= differences(was, is_now, f"{here}.")
        elif was != is_now:
            changes[here] = {"before": _short(was), "after": _short(is_now)}
    return changes


async def listing(
    gateway: Gateway, actor: Actor, limit: int = 50, cursor: str | None = None, subject: str | None = None
) -> Listing[AuditEntry]:
    """Who changed what and when, newest first. It holds no secret."""
    require(actor, "admin")
    limit = page_size(limit)
    rows = await gateway.store.audit.page(limit + 1, cursor, subject)
    entries, next_cursor = first_page(rows, limit, lambda entry: entry.id)
    return Listing(items=entries, next_cursor=next_cursor)


def _short(value: Any) -> Any:
    return value[:LONGEST_VALUE] + "…" if isinstance(value, str) and len(value) > LONGEST_VALUE else value
