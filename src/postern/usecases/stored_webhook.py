"""Finds a webhook with its settings and secrets, and writes it back."""

from postern.core.access.audit import AuditEntry
from postern.core.problems import Refused, existing
from postern.core.webhooks.stored import StoredWebhook, UnreadableWebhook
from postern.core.webhooks.webhook import Webhook
from postern.usecases.runtime.gateway import Gateway

NO_WEBHOOK = "there is no webhook with this id"


def served(gateway: Gateway, webhook_id: str) -> Webhook:
    """The webhook as calls meet it. Raises ``Refused``."""
    return existing(gateway.runtime.directory.by_id(webhook_id), NO_WEBHOOK)


async def stored(gateway: Gateway, webhook_id: str, seen_version: int | None = None) -> StoredWebhook:
    """The webhook with its settings and secrets. Raises ``Refused``, also if it is no longer the version that was seen."""
    webhook = await gateway.store.webhooks.get(webhook_id)
    if webhook is None:
        raise Refused("not_found", NO_WEBHOOK)
    if isinstance(webhook, UnreadableWebhook):
        raise Refused("temporarily_unavailable", webhook.explanation)
    check_version(webhook, seen_version)
    return webhook


def check_version(webhook: StoredWebhook | UnreadableWebhook, seen_version: int | None) -> None:
    if seen_version is not None and seen_version != webhook.version:
        raise Refused("version_conflict")


def check_secrets(webhook: StoredWebhook) -> None:
    """Raises ``Refused`` if one of them cannot be decrypted."""
    if webhook.unreadable_secrets:
        raise Refused("temporarily_unavailable", "; ".join(webhook.unreadable_secrets.values()))


async def save(
    gateway: Gateway,
    webhook: StoredWebhook,
    changes: dict[str, bytes | None],
    note: AuditEntry,
    promote: bool = False,
) -> None:
    """Writes a changed webhook, unless somebody else was faster."""
    seen = webhook.version
    webhook.version += 1
    webhook.updated_at = gateway.clock()
    if not await gateway.store.webhooks.update(webhook, seen, changes, note, promote):
        raise Refused("version_conflict")
    await gateway.runtime.directory.refresh()
