"""The webhooks by short code, compiled, in memory: what a call looks up. Follows every change within half a
second."""

import asyncio
import contextlib
from collections.abc import Callable

import structlog

from postern.core.history.invocation import StoreUnavailable
from postern.core.webhooks.stored import StoredWebhook
from postern.core.webhooks.webhook import Webhook
from postern.usecases.ports import WebhookStore

log = structlog.get_logger("postern.directory")

LOOK_EVERY = 0.4


class Directory:
    def __init__(self, store: WebhookStore, compile_webhook: Callable[[StoredWebhook], Webhook]) -> None:
        self._store = store
        self._compile = compile_webhook
        self._by_code: dict[str, Webhook] = {}
        self._by_id: dict[str, Webhook] = {}
        self._epoch = -1
        self._lock = asyncio.Lock()
        self._stirred = asyncio.Event()

    def by_code(self, short_code: str) -> Webhook | None:
        return self._by_code.get(short_code)

    def by_id(self, webhook_id: str) -> Webhook | None:
        return self._by_id.get(webhook_id)

    def stir(self) -> None:
        """Somebody changed something: look now, not at the next round."""
        self._stirred.set()

    async def refresh(self) -> None:
        """Take in what changed, here or in another process."""
        async with self._lock:
            self._epoch, changed = await self._store.changed_since(self._epoch)
            for stored in changed:
                if stored.deleted:
                    self._by_code.pop(stored.short_code, None)
                    self._by_id.pop(stored.id, None)
                    continue
                try:
                    webhook = self._compile(stored)
                except Exception as error:
                    # One webhook whose configuration this version cannot read must not keep the others from
                    # being served; it is not served with its old rules either.
                    log.error("a webhook cannot be served", webhook=stored.id, error=str(error))
                    self._by_code.pop(stored.short_code, None)
                    self._by_id.pop(stored.id, None)
                    continue
                self._by_code[stored.short_code] = self._by_id[stored.id] = webhook

    async def follow(self) -> None:
        """Runs as long as the gateway serves."""
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stirred.wait(), LOOK_EVERY)
            self._stirred.clear()
            try:
                await self.refresh()
            except StoreUnavailable as error:
                log.warning("configuration could not be read; going on with what is known", error=str(error))
