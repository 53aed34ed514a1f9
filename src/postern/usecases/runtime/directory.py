"""The directory: all webhooks, compiled, in memory, where calls look them up. It follows every change within half a second."""

import asyncio
from collections.abc import Callable, ValuesView

from postern.core.history.invocation import StoreUnavailable
from postern.core.webhooks import listing
from postern.core.webhooks.listing import Groups, Listed, groups_of
from postern.core.webhooks.stored import StoredWebhook, UnreadableWebhook
from postern.core.webhooks.webhook import Webhook
from postern.observe.logs import log
from postern.stores.webhooks.webhooks import WebhookStore
from postern.usecases.runtime.loop import Loop

CHECK_WEBHOOKS_EVERY = 0.4
WEBHOOKS_AT_ONCE = 100


class Directory:
    def __init__(self, store: WebhookStore, compile_webhook: Callable[[StoredWebhook], Webhook]) -> None:
        self._store = store
        self._compile = compile_webhook
        self._by_address: dict[str, Webhook] = {}
        """By short code and by path: no path looks like a short code."""
        self._by_id: dict[str, Webhook] = {}
        self.not_served: dict[str, UnreadableWebhook] = {}
        """The webhooks that are there and cannot be served, by id."""
        self._addresses_not_served: dict[str, str] = {}
        self._listed: dict[str, Listed] = {}
        self._groups: Groups | None = None
        self._by_name: dict[str, list[str]] | None = None
        self.trouble: str | None = None
        """Why changes are not followed, or None."""
        self._epoch = -1
        self._lock = asyncio.Lock()
        self._changed = asyncio.Event()

    def by_address(self, address: str) -> Webhook | None:
        return self._by_address.get(address)

    def by_id(self, webhook_id: str) -> Webhook | None:
        return self._by_id.get(webhook_id)

    def knows(self, address: str) -> bool:
        """Also a webhook that cannot be served: its callers are to come back, not to hear that it does not exist."""
        return address in self._by_address or address in self._addresses_not_served

    def listed(self) -> ValuesView[Listed]:
        """Every webhook, whether it can be served or not."""
        return self._listed.values()

    def listed_by_id(self, webhook_id: str) -> Listed | None:
        return self._listed.get(webhook_id)

    def called(self, name: str) -> list[str]:
        """The ids of the webhooks with this name, in capitals or not."""
        if self._by_name is None:
            self._by_name = {}
            for listed in self._listed.values():
                self._by_name.setdefault(listed.folded_name, []).append(listed.id)
        return self._by_name.get(name.casefold(), [])

    def typed(self, listed: Listed) -> str:
        """The text that means this webhook: its name, or its id if another one has the name."""
        return (
            listed.name
            if self.called(listed.name) == [listed.id] and listed.name.strip() == listed.name
            else listed.id
        )

    def groups(self) -> Groups:
        """Counted once after each change."""
        if self._groups is None:
            self._groups = groups_of(self._listed.values())
        return self._groups

    def __len__(self) -> int:
        return len(self._by_id)

    def refresh_soon(self) -> None:
        """Looks for changes now, not at the next round."""
        self._changed.set()

    async def refresh(self) -> None:
        """Takes in what was changed here or in another process."""
        async with self._lock:
            changed = await self._store.changed_since(self._epoch)
            for webhook_id in changed.deleted:
                self._forget(webhook_id)
            for unreadable in changed.unreadable:
                self._not_served(unreadable, listing.unreadable(unreadable))
            for place, stored in enumerate(changed.stored, 1):
                self._take(stored)
                if place % WEBHOOKS_AT_ONCE == 0:
                    await asyncio.sleep(0)  # calls are answered while thousands are taken in
            self._epoch = changed.epoch

    def _take(self, stored: StoredWebhook) -> None:
        try:
            webhook = self._compile(stored)
        except Exception as error:
            reason = str(error) or type(error).__name__
            unserved = UnreadableWebhook(stored.id, stored.addresses, stored.name, stored.version, reason)
            self._not_served(unserved, listing.listed(stored, served=False))
            return
        self._forget(stored.id)
        self._by_id[stored.id] = webhook
        self._by_address |= dict.fromkeys(webhook.addresses, webhook)
        self._listed[stored.id] = listing.listed(stored)

    def _not_served(self, webhook: UnreadableWebhook, listed: Listed) -> None:
        """Keeps a webhook from being served, so that it is not served with its old rules, and the others are."""
        log.error("a webhook cannot be served", webhook=webhook.id, error=webhook.reason)
        self._forget(webhook.id)
        self.not_served[webhook.id] = webhook
        self._addresses_not_served |= dict.fromkeys(webhook.addresses, webhook.id)
        self._listed[webhook.id] = listed

    def _forget(self, webhook_id: str) -> None:
        self._groups = self._by_name = None
        self._listed.pop(webhook_id, None)
        if (unserved := self.not_served.pop(webhook_id, None)) is not None:
            for address in unserved.addresses:
                if self._addresses_not_served.get(address) == webhook_id:
                    del self._addresses_not_served[address]
        if (known := self._by_id.pop(webhook_id, None)) is not None:
            for address in known.addresses:
                if self._by_address.get(address) is known:  # another webhook may have taken its path since
                    del self._by_address[address]

    async def follow(self) -> None:
        """Runs as long as the gateway serves."""
        await Loop("webhooks", self._refresh_or_log, CHECK_WEBHOOKS_EVERY, self._changed.wait).run()

    async def _refresh_or_log(self) -> None:
        self._changed.clear()
        try:
            await self.refresh()
            self.trouble = None
        except Exception as error:
            if self.trouble is None:
                log.error(
                    "changes to webhooks are not followed",
                    error=str(error),
                    exc_info=not isinstance(error, StoreUnavailable),
                )
            # One line: libraries add questions to theirs.
            self.trouble = str(error).partition("\n")[0] or type(error).__name__
