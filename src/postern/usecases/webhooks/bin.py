"""The bin: for seven days a deleted webhook can be restored as it was."""

from postern.core.access.accounts import Actor
from postern.core.problems import Refused, existing
from postern.core.webhooks.stored import BinnedWebhook
from postern.usecases.access.audit import noted
from postern.usecases.answers import Time, first_page, page_size, shown
from postern.usecases.runtime.gateway import Gateway, require
from postern.usecases.webhooks import views
from postern.usecases.webhooks.webhooks import show

KEPT_FOR = 7 * 86_400.0
"""Seconds."""

NOT_IN_THE_BIN = "there is no webhook with this id in the bin"


async def listing(
    gateway: Gateway, actor: Actor, limit: int = 200, cursor: str | None = None, only: str | None = None
) -> views.Bin:
    """The webhooks that were deleted in the last seven days, the last one first. Their URLs answer 404."""
    require(actor, "read")
    limit = page_size(limit)
    rows = await gateway.store.bin.page(webhook_id=only, after=cursor, limit=limit + 1)
    page, next_cursor = first_page(rows, limit, lambda binned: binned.id)
    tallies = await gateway.store.webhooks.tallies([binned.id for binned in page])
    items = [
        shown(
            views.Binned,
            binned,
            url=gateway.site.webhook_url(binned.path or binned.short_code),
            gone_at=Time(binned.deleted_at + KEPT_FOR),
            call_count=calls.count if (calls := tallies[binned.id].get("calls")) else 0,
        )
        for binned in page
    ]
    total = await gateway.store.bin.count()
    return views.Bin(items=items, next_cursor=next_cursor, total=total)


async def restore(gateway: Gateway, actor: Actor, webhook_id: str) -> views.Webhook:
    """A webhook out of the bin, as it was: URL, settings, secrets, what it holds."""
    require(actor, "write")
    binned = await _in_the_bin(gateway, webhook_id)
    note = noted(gateway, actor, "webhook restored", webhook_id, name=binned.name)
    if not await gateway.store.bin.restore(webhook_id, gateway.clock(), note):
        raise Refused("not_found", NOT_IN_THE_BIN)
    await gateway.runtime.directory.refresh()
    gateway.runtime.starts_due()
    return await show(gateway, actor, webhook_id)


async def delete_for_good(gateway: Gateway, actor: Actor, webhook_id: str) -> None:
    """Out of the bin before its seven days are over: its settings and secrets are deleted now, and its short
    code is never given out again. Its history stays until retention takes it."""
    require(actor, "write")
    binned = await _in_the_bin(gateway, webhook_id)
    note = noted(gateway, actor, "webhook deleted for good", webhook_id, name=binned.name)
    if not await gateway.store.bin.purge(webhook_id, note):
        raise Refused("not_found", NOT_IN_THE_BIN)


async def empty(gateway: Gateway) -> int:
    """Deletes what has been in the bin for seven days. Returns how many that were."""
    gone = 0
    for binned in await gateway.store.bin.page(before=gateway.clock() - KEPT_FOR):
        gone += await gateway.store.bin.purge(binned.id)
    return gone


async def _in_the_bin(gateway: Gateway, webhook_id: str) -> BinnedWebhook:
    rows = await gateway.store.bin.page(webhook_id=webhook_id)
    return existing(next(iter(rows), None), NOT_IN_THE_BIN)
