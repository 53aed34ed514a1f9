"""A gateway on a real store, without sockets. On SQLite; `on_both` asks for Postgres, too, where statements or locks differ."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest

from postern.core.access.accounts import Actor
from postern.core.admit import admit, admit_head
from postern.core.answer import CallerAnswer
from postern.core.calls.call import Call
from postern.settings import Settings
from postern.usecases.calls.receive import CallerState, receive
from postern.usecases.runtime.gateway import Gateway
from postern.usecases.shapes import validated
from postern.usecases.webhooks import webhooks
from postern.usecases.webhooks.requests import WebhookRequest
from postern.wiring.gateway import opened
from support.fresh import fresh_data, fresh_key, looked_through_once

ACTOR = Actor("test", "admin")

on_both = pytest.mark.parametrize("settings", ["sqlite", "postgres"], indirect=True)


class Desk:
    """A gateway, and the short way to do things with it."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.store: Any = gateway.store
        """The real one, tables and all."""

    async def webhook(self, name: str = "Orders", **settings: Any) -> str:
        given = {"name": name, "authentication": {"method": "none"}, **settings}
        request: WebhookRequest = validated(WebhookRequest, given)
        return str((await webhooks.create(self.gateway, ACTOR, request)).id)

    async def call(
        self,
        webhook_id: str,
        body: Any,
        *headers: tuple[bytes, bytes],
        at: float | None = None,
        method: str = "POST",
    ) -> CallerAnswer:
        """Takes a call in as ingress does, without the socket."""
        webhook = self.gateway.runtime.directory.by_id(webhook_id)
        assert webhook is not None
        text = body if isinstance(body, bytes) else msgspec.json.encode(body)
        now = self.gateway.clock() if at is None else at
        given = ((b"content-type", b"application/json"), *headers)
        call = Call(
            method,
            f"/webhook/{webhook.addresses[0]}".encode(),
            b"",
            given,
            text,
            "203.0.113.9",
            now,
            self.gateway.site.base_url,
        )
        verdict = admit_head(webhook, call) or admit(webhook, call, self.gateway.runtime.limits)
        answered: asyncio.Future[CallerAnswer] = asyncio.get_running_loop().create_future()

        def on_answer(answer: CallerAnswer) -> CallerState:
            answered.set_result(answer)
            return "there"

        receive(self.gateway, webhook, call, verdict, on_answer)
        return await answered

    async def accepted(
        self, webhook_id: str, body: Any, *headers: tuple[bytes, bytes], at: float | None = None
    ) -> str:
        answer = await self.call(webhook_id, body, *headers, at=at)
        document = msgspec.json.decode(answer.body)
        assert (answer.status, document["status"]) == (200, "accepted"), document
        return str(document["invocationId"])

    async def numbered(self, webhook_id: str, count: int) -> list[str]:
        """So many calls, each with a number of its own."""
        return [await self.accepted(webhook_id, {"n": number}) for number in range(count)]

    async def rows(self, statement: Any) -> list[Any]:
        return list(await self.store.database.read(lambda connection: connection.execute(statement).all()))


@pytest.fixture
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    given = {
        "POSTERN_OUTBOUND_ALLOWED": "127.0.0.1",
        "POSTERN_DATA_DIR": str(tmp_path / "data"),
        "POSTERN_WORKFLOWS": str(tmp_path / "workflows"),
        "POSTERN_LOG": "off",
    }
    if getattr(request, "param", "sqlite") == "postgres":
        given["POSTERN_DATABASE_URL"] = request.getfixturevalue("started_url")
        fresh_key(tmp_path / "data")
    else:
        fresh_data(tmp_path / "data")
    return Settings(given)


@pytest.fixture
async def desk(settings: Settings) -> AsyncIterator[Desk]:
    async with AsyncExitStack() as stack:
        with looked_through_once(settings.data_dir):
            gateway = await stack.enter_async_context(opened(settings))
        yield Desk(gateway)
