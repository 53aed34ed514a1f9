"""Webhooks for a running program, made and looked at as its command line would: through its database."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from postern.core.access.accounts import Actor
from postern.core.history.invocation import HistoryFilter
from postern.settings import Settings
from postern.usecases.answers import as_plain
from postern.usecases.history import history
from postern.usecases.runtime.gateway import Gateway
from postern.usecases.shapes import validated
from postern.usecases.webhooks import webhooks
from postern.usecases.webhooks.requests import WebhookRequest
from postern.usecases.webhooks.views import Webhook
from postern.wiring.gateway import opened
from support.waiting import wait_until

T = TypeVar("T")

TOKEN = "whk_the_token_of_these_tests_0123456789abcdef"
SECOND_TOKEN = "whk_another_token_of_these_tests_987654321"
OWNER = Actor("tests", "admin")
UNLIMITED = {"callsPerSecond": 100_000, "burst": 1_000_000}


@dataclass(frozen=True)
class ServedWebhook:
    id: str
    short_code: str

    @property
    def path(self) -> str:
        return f"/webhook/{self.short_code}"


def within(data_dir: Path, use_case: Callable[[Gateway], Awaitable[T]], **environment: str) -> T:
    """Run a use case on the program's database, beside the program."""

    async def inside() -> T:
        settings = Settings(
            {"POSTERN_DATA_DIR": str(data_dir), "POSTERN_ENGINE": "none", "POSTERN_LOG": "off", **environment}
        )
        async with opened(settings) as gateway:
            return await use_case(gateway)

    return asyncio.run(inside())


def make_webhook(
    data_dir: Path, *, name: str = "A webhook", environment: dict[str, str] | None = None, **settings: Any
) -> ServedWebhook:
    """A webhook that asks for ``X-Api-Key: TOKEN``, unless the settings say otherwise. A running program
    serves it within a second."""
    wanted = {
        "name": name,
        "authentication": {"method": "token", "token": TOKEN},
        "rateLimit": UNLIMITED,
        **settings,
    }

    async def create(gateway: Gateway) -> Webhook:
        request: WebhookRequest = validated(WebhookRequest, wanted)
        return await webhooks.create(gateway, OWNER, request)

    made = within(data_dir, create, **(environment or {}))
    return ServedWebhook(made.id, made.url.rpartition("/")[2])


def stories(
    data_dir: Path, webhook: ServedWebhook | None = None, *, newest: int | None = None, **environment: str
) -> list[dict[str, Any]]:
    """Returns everything that history tells of this webhook's calls, the newest first. ``newest``: only so many."""

    async def read(gateway: Gateway) -> list[dict[str, Any]]:
        ids = await _ids(gateway, webhook, newest)
        return [as_plain(await history.show(gateway, OWNER, one)) for one in ids]

    return within(data_dir, read, **environment)


def how_many(data_dir: Path, webhook: ServedWebhook | None = None) -> int:
    """Counts the calls that history finds: to read hundreds of them takes a second."""

    async def counted(gateway: Gateway) -> int:
        found = await history.count(gateway, OWNER, HistoryFilter(webhook_id=webhook.id if webhook else None))
        assert not found.or_more
        return found.calls

    return within(data_dir, counted)


async def _ids(gateway: Gateway, webhook: ServedWebhook | None, newest: int | None = None) -> list[str]:
    wanted = HistoryFilter(webhook_id=webhook.id if webhook else None)
    found: list[str] = []
    cursor = None
    while True:
        page = await history.listing(gateway, OWNER, wanted, newest or 200, cursor)
        found += [item.id for item in page.items]
        cursor = page.next_cursor
        if cursor is None or newest is not None:
            return found


def wait_until_served(port: int, *served: ServedWebhook) -> None:
    """The running program has noticed them. Asked with a method that no webhook takes and without a body."""
    from support.wire import exchange

    for webhook in served:
        wait_until(
            lambda webhook=webhook: exchange(port, "PUT", webhook.path).status != 404,
            what=f"{webhook.path} to be served",
        )  # type: ignore[misc]
