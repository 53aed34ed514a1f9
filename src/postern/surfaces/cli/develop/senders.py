"""The webhooks of a sender, where a command is given the sender alone."""

from postern.surfaces.cli.gateway.api import api
from postern.usecases.webhooks.views import Webhook, Webhooks, WithSignature

PAGE = 200


def webhooks_of(sender: str) -> list[Webhook]:
    found: list[Webhook] = []
    cursor: str | None = None
    while True:
        page = api.get(Webhooks, "webhooks", limit=PAGE, cursor=cursor, sender=sender)
        found += [one for one in page.items if _provider(one) == sender.strip().lower()]
        cursor = page.next_cursor
        if cursor is None:
            return found


def _provider(webhook: Webhook) -> str:
    how = webhook.authentication
    return how.provider if isinstance(how, WithSignature) else ""
