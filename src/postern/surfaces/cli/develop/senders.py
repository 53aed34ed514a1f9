"""A sender that a command is given, and its webhooks."""

from postern.surfaces.cli.gateway.api import api
from postern.surfaces.cli.run import USAGE, end
from postern.usecases.signatures import senders
from postern.usecases.webhooks.views import Webhook, Webhooks, WithSignature

PAGE = 200


def check_sender(name: str) -> None:
    if name not in senders.names():
        end(
            f"{name!r} is no webhook (wh_…) and no sender; {senders.meant(name)}the senders are {', '.join(senders.names())}",
            USAGE,
        )


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
