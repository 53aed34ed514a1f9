"""A whole gateway in this process, on a real SQLite file, without sockets: calls arrive as they do from a
connection, use cases are asked directly."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from postern.core.access.accounts import Actor
from postern.core.address import NOBODY, ClientAddresses
from postern.core.answer import CallerAnswer
from postern.core.deliveries.delivery import (
    End,
    EngineHealth,
    EngineRejected,
    EngineUnavailable,
    Run,
    Started,
    Trigger,
    Workflow,
)
from postern.core.history.invocation import HistoryFilter, Story
from postern.settings import Settings
from postern.usecases.access import audit
from postern.usecases.calls.intake import IncomingCall, Intake
from postern.usecases.calls.receive import CallerState
from postern.usecases.calls.respond import respond
from postern.usecases.deliveries.dispatch import Dispatcher
from postern.usecases.history import history
from postern.usecases.history.filters import filter_of
from postern.usecases.runtime.gateway import Gateway
from postern.usecases.shapes import validated
from postern.usecases.summary import InvocationSummary
from postern.usecases.webhooks import webhooks
from postern.usecases.webhooks.requests import WebhookRequest
from postern.usecases.webhooks.views import Webhook
from postern.wiring.gateway import opened
from support.fresh import fresh_data, fresh_database, looked_through_once
from support.reply import HttpReply
from support.waiting import until

OWNER = Actor("owner", "admin")


class NotingEngine:
    """Starts nothing and remembers everything: how often each key was started, and with what. It can be
    down."""

    name = "noting"
    asked_after: float | None = None

    def __init__(self) -> None:
        self.started: dict[str, Trigger] = {}
        self.times: dict[str, int] = {}
        self.down = False
        self.nobody_listens = False
        self.refuses = ""

    async def open(self) -> None: ...

    async def start(self, trigger: Trigger) -> Started:
        if self.down:
            raise EngineUnavailable("switched off by the test")
        if self.refuses:
            raise EngineRejected(self.refuses)
        self.started.setdefault(trigger.key, trigger)
        self.times[trigger.key] = self.times.get(trigger.key, 0) + 1
        return Started(0) if self.nobody_listens else Started(1, ("noted",))

    async def ended(self, key: str) -> Any:
        await asyncio.Event().wait()

    async def ends(self, keys: list[str]) -> dict[str, End | None]:
        return {}

    async def health(self) -> EngineHealth:
        return EngineHealth(not self.down, "noting")

    async def workflows(self) -> list[Workflow] | None:
        return []

    async def runs(self, limit: int = 50, delivery_key: str | None = None) -> list[Run] | None:
        return []

    async def forget(self, keys: list[str]) -> None: ...

    async def close(self) -> None: ...


class AnsweredCall(IncomingCall):
    def __init__(self, intake: Intake) -> None:
        self.answered: asyncio.Future[CallerAnswer] = asyncio.get_running_loop().create_future()
        super().__init__(intake, self._on_answer)

    def _on_answer(self, answer: CallerAnswer) -> CallerState:
        self.answered.set_result(answer)
        return "there"


class HasUrl(Protocol):
    @property
    def url(self) -> str: ...


@dataclass
class House:
    gateway: Gateway
    engine: NotingEngine
    dispatcher: Dispatcher

    async def webhook(self, **settings: Any) -> Webhook:
        """A new webhook; what is not given is method None."""
        document = {"name": "Orders", "authentication": {"method": "none"}, **settings}
        return await webhooks.create(self.gateway, OWNER, validated(WebhookRequest, document))

    async def call(
        self,
        webhook: HasUrl,
        body: bytes = b"{}",
        *,
        headers: dict[str, str] | None = None,
        method: str = "POST",
        query: str = "",
        peer: str = "127.0.0.1",
    ) -> HttpReply:
        pairs = (
            [(b"content-type", b"application/json")]
            if method == "POST" and "content-type" not in (headers or {})
            else []
        )
        given = (
            *pairs,
            *((name.lower().encode(), value.encode("latin-1")) for name, value in (headers or {}).items()),
        )
        call = AnsweredCall(Intake(self.gateway, ClientAddresses(NOBODY, "X-Forwarded-For")))
        call.head(
            method,
            b"/webhook/" + webhook.url.partition("/webhook/")[2].encode(),
            query.encode(),
            given,
            peer=peer,
        )
        for arrives in (lambda: call.piece(body), call.end):
            if not call.settled:
                arrives()
        answer = await call.answered
        return HttpReply(
            answer.status,
            {name.decode().lower(): value.decode("latin-1") for name, value in answer.headers},
            answer.body,
        )

    async def recorded(self, webhook: HasUrl, body: bytes = b"{}", **call: Any) -> str:
        """The id under which the call was stored."""
        return str((await self.call(webhook, body, **call)).json["invocationId"])

    def lets_callers_wait(self, webhook: Webhook, seconds: float = 0.05) -> None:
        """Sets how long callers of this webhook wait, until its settings are changed. The settings say it in whole
        seconds; for a caller that has waited the result is the same."""
        served = self.gateway.runtime.directory.by_id(webhook.id)
        assert served is not None and served.answer_timeout is not None
        served.answer_timeout = seconds

    async def deliver(self) -> None:
        """Start whatever is due."""
        while await self.dispatcher.round():
            await self.dispatcher.finish()
        for lane in await self.gateway.store.deliveries.lanes():
            own = Dispatcher(self.gateway, lane)
            while await own.round():
                await own.finish()

    async def begun(self) -> Trigger:
        """Returns what the engine was given, as soon as it was given something."""
        await until(lambda: self.engine.started)
        (trigger,) = self.engine.started.values()
        return trigger

    async def answer(
        self,
        trigger: Trigger,
        status: int | None = 201,
        body: Any = "x",
        headers: dict[str, str] | None = None,
    ) -> None:
        """As its workflow does."""
        assert trigger.response is not None
        given, token = headers or {}, trigger.response.token
        await respond(self.gateway, trigger.invocation_id, token, status=status, headers=given, body=body)

    async def history(self, **wanted: Any) -> list[InvocationSummary]:
        return (await history.listing(self.gateway, OWNER, HistoryFilter(**wanted), 200)).items

    async def found(self, **asked: str) -> list[str]:
        """The ids of the calls that a filter finds, as it is asked for on a surface."""
        page = await history.listing(self.gateway, OWNER, filter_of(**asked))
        return [item.id for item in page.items]

    async def story(self, invocation: str) -> Story:
        """What the store has of one call."""
        found = await self.gateway.store.history.get(invocation)
        assert found is not None
        return found

    async def noted(self) -> tuple[str, str, dict[str, Any]]:
        """The action, the subject and the changes of the newest note of the audit."""
        note = (await audit.listing(self.gateway, OWNER, 1)).items[0]
        return note.action, note.subject, note.changes


@asynccontextmanager
async def a_house(folder: Path, **environment: str) -> AsyncIterator[House]:
    settings = Settings(
        {
            "POSTERN_DATA_DIR": str(folder / "data"),
            "POSTERN_LOG": "off",
            "POSTERN_BASE_URL": "https://hooks.example.com",
            **environment,
        }
    )
    if settings.is_sqlite and settings.secret_keys:
        fresh_database(settings.data_dir / "postern.db")
    elif settings.is_sqlite:
        fresh_data(settings.data_dir)
    async with AsyncExitStack() as stack:
        with looked_through_once(settings.data_dir):
            gateway = await stack.enter_async_context(opened(settings))
        engine = NotingEngine()
        gateway.engine = engine
        yield House(gateway, engine, Dispatcher(gateway))
