"""Deleted webhooks over HTTP, for as long as they can be restored."""

from postern.core.access.accounts import Actor
from postern.surfaces.rest.framework.operation import Rows
from postern.surfaces.rest.framework.parameters import Limit, OnePage
from postern.usecases.runtime.gateway import Gateway
from postern.usecases.webhooks import bin
from postern.usecases.webhooks.views import Bin, Webhook

row = Rows("Webhooks")


class BinQuery(OnePage):
    limit: Limit = 200


@row("GET", "/bin", "List deleted webhooks", level="read")
async def list_bin(gateway: Gateway, actor: Actor, query: BinQuery) -> Bin:
    """What was deleted in the last seven days, the last one first. Their URLs answer 404."""
    return await bin.listing(gateway, actor, query.limit, query.cursor)


@row("POST", "/bin/{webhook_id}/restore", "Restore a deleted webhook", level="write", versioned=True)
async def restore_webhook(gateway: Gateway, actor: Actor, webhook_id: str) -> Webhook:
    """As it was: URL, settings, secrets, what it holds."""
    return await bin.restore(gateway, actor, webhook_id)


@row("DELETE", "/bin/{webhook_id}", "Delete a webhook for good", level="write", status=204)
async def delete_for_good(gateway: Gateway, actor: Actor, webhook_id: str) -> None:
    """Its settings and secrets are deleted now, and its URL is never given out again. Its history stays until
    retention takes it."""
    await bin.delete_for_good(gateway, actor, webhook_id)
