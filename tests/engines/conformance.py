"""What every engine must do, once for all of them.

An engine joins by a test class that inherits ``EngineConformance``, and one fixture:

    @pytest.fixture
    async def harness() -> AsyncIterator[Harness]:
        async with endpoint() as gateway:
            yield MyHarness(gateway, ...)       # with an engine that has been opened

    class TestMyEngine(EngineConformance): ...

A ``Harness`` brings the engine together with one real workflow (or a stand-in for it) that

- keeps the trigger document it was run with, so that ``ran`` can tell it;
- fails when ``fieldOne`` is ``fail``;
- otherwise, when somebody waits, answers ``{"status": 200, "headers": {}, "body": {"echo": <fieldOne>}}``: by
a POST to the
  slot's URL with ``Authorization: Bearer <token>``, or inline.

``endpoint()`` stands for the gateway's side of that POST: 200 for the first answer, 410 afterwards or when
closed.
"""

import asyncio
import itertools
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import httpx2
import pytest

from engines.relay import Relay
from postern.core.deliveries.delivery import (
    EngineRejected,
    EngineUnavailable,
    ResponseSlot,
    Started,
    Trigger,
    delivery_key,
)
from postern.usecases.ports import Engine
from stand_in import Received, Reply, stand_in
from support.plain_http import WITHOUT_TLS
from support.waiting import PATIENCE

_numbers = itertools.count(1)


class Harness(Protocol):
    engine: Engine
    endpoint: "AnswerEndpoint"
    idempotent: bool
    hands_trace: bool
    """Whether starting the same key twice starts once. An engine that cannot promise it says so in its
    documentation."""
    tells_the_end: bool
    """Whether ``ended`` returns before the caller's own deadline."""

    async def ran(self) -> list[dict[str, Any]]:
        """The trigger documents that the workflow has been run with so far, in order."""
        ...

    async def stop(self) -> None:
        """Make the engine unreachable."""
        ...

    async def resume(self) -> None:
        """Make it reachable again."""
        ...

    def refused(self) -> Trigger | None:
        """A trigger that the engine will never take, or None where it takes everything."""
        ...


@dataclass
class AnswerEndpoint:
    """The URL to which workflows post their answers. ``accepted`` and ``late`` hold the documents that came."""

    url: str = ""
    accepted: list[Any] = field(default_factory=list)
    late: list[Any] = field(default_factory=list)
    closed: bool = False

    def slot(self, seconds: float = 30.0) -> ResponseSlot:
        return ResponseSlot(self.url + "/response", "one-time", time.time() + seconds)

    def post(self, request: Received) -> Reply:
        if request.headers.get("authorization") != "Bearer one-time":
            return Reply(401)
        if self.closed:
            self.late.append(request.json)
            return Reply(410)
        self.closed = True
        self.accepted.append(request.json)
        return Reply(200, {"Content-Type": "application/json"}, b"{}")


@asynccontextmanager
async def endpoint() -> AsyncIterator[AnswerEndpoint]:
    made = AnswerEndpoint()
    async with stand_in(made.post) as server:
        made.url = server.url
        yield made


TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def trigger(
    *,
    field_one: str = "1001",
    invocation: str | None = None,
    emission: int = 1,
    response: ResponseSlot | None = None,
) -> Trigger:
    invocation_id = invocation or f"inv_{next(_numbers)}_{time.time_ns()}"
    payload = b'{"orderNumber":"1001","total":10.00,"id":123456789012345678901234567890,"name":"J\xc3\xb6rg"}'
    return Trigger(
        delivery_key(invocation_id, emission),
        "wh_1",
        invocation_id,
        {"fieldOne": field_one, "fieldTwo": "zwei"},
        payload,
        response,
        traceparent=TRACE,
    )


async def until(condition: Callable[[], Awaitable[Any]], patience: float = PATIENCE) -> Any:
    """The condition's value as soon as it is true. Never sleeps and hopes: it asks again until it is, or time
    is up."""
    deadline = asyncio.get_running_loop().time() + patience
    while not (value := await condition()):
        if asyncio.get_running_loop().time() > deadline:
            raise AssertionError("waited in vain")
        await asyncio.sleep(0.02)
    return value


class Relayed:
    """The base of a harness whose engine is reached by a relay, and whose workflows write what they were run with
    into a file."""

    idempotent = hands_trace = True
    tells_the_end = True

    def __init__(self, gateway: AnswerEndpoint, relay: Relay, file: Path) -> None:
        self.endpoint = gateway
        self.relay = relay
        self._file = file

    async def ran(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._file.read_text().splitlines()]

    async def stop(self) -> None:
        await self.relay.cut()

    async def resume(self) -> None:
        await self.relay.open()


class Played:
    """The base of a harness that plays the engine itself, as a server that answers as the engine does (``run``)."""

    tells_the_end = False
    engine: Engine

    def __init__(self, gateway: AnswerEndpoint) -> None:
        self.endpoint = gateway
        self.documents: list[dict[str, Any]] = []
        self.answers: set[asyncio.Task[None]] = set()
        self.running = AsyncExitStack()
        self.port = 0

    def run(self, request: Received) -> Reply:
        raise NotImplementedError

    async def resume(self) -> None:
        server = await self.running.enter_async_context(stand_in(self.run, port=self.port))
        self.port = server.port

    async def stop(self) -> None:
        await self.running.aclose()

    def answer_later(self, url: str, token: str, text: str) -> None:
        async def answer() -> None:
            async with httpx2.AsyncClient(trust_env=False, verify=WITHOUT_TLS) as client:
                body = {"status": 200, "headers": {}, "body": {"echo": text}}
                await client.post(url, json=body, headers={"Authorization": f"Bearer {token}"})

        self.answers.add(asyncio.create_task(answer()))

    async def ran(self) -> list[dict[str, Any]]:
        return self.documents

    def refused(self) -> Trigger:
        return trigger(field_one="refuse")

    @asynccontextmanager
    async def opened(self, make: Callable[[int], Engine]) -> AsyncIterator[Any]:
        await self.resume()
        self.engine = make(self.port)
        await self.engine.open()
        yield self
        await self.engine.close()
        await asyncio.gather(*self.answers)
        await self.stop()


async def the_example_answers(harness: Relayed, engine: Engine) -> None:
    """Looks an order up, as every example of an engine does."""
    await engine.start(trigger(field_one="1001", response=harness.endpoint.slot()))

    async def answered() -> list[Any]:
        return harness.endpoint.accepted

    [answer] = await until(answered)
    order = {"name": "#1001", "financialStatus": "PAID", "fulfillmentStatus": "FULFILLED"}
    assert answer["body"] == {"orders": [order]}
    await engine.close()


async def ran(harness: Harness, invocation_id: str, times: int = 1) -> list[dict[str, Any]]:
    async def enough() -> list[dict[str, Any]]:
        found = [document for document in await harness.ran() if document["invocationId"] == invocation_id]
        return found if len(found) >= times else []

    found: list[dict[str, Any]] = await until(enough)
    return found


class EngineConformance:
    async def test_a_start_runs_the_workflow_with_the_variables_and_the_payload(
        self, harness: Harness
    ) -> None:
        started = await harness.engine.start(asked := trigger())
        assert started.runs >= 1
        [document] = await ran(harness, asked.invocation_id)
        assert {name: document[name] for name in asked.variables} == asked.variables
        assert document.get("response") is None
        assert document.get("traceparent") == (TRACE if harness.hands_trace else None)

    async def test_a_start_that_is_sent_again_runs_once(self, harness: Harness) -> None:
        asked = trigger()
        await harness.engine.start(asked)
        await ran(harness, asked.invocation_id)
        again = await harness.engine.start(asked)
        assert again.runs >= 1
        await harness.engine.start(after := trigger())
        await ran(harness, after.invocation_id)
        assert len(await ran(harness, asked.invocation_id)) == (1 if harness.idempotent else 2)

    async def test_a_replay_runs_again_with_the_same_invocation_id(self, harness: Harness) -> None:
        await harness.engine.start(first := trigger())
        await harness.engine.start(trigger(invocation=first.invocation_id, emission=2))
        assert len(await ran(harness, first.invocation_id, times=2)) == 2

    async def test_an_unreachable_engine_is_unavailable_and_takes_the_same_start_later(
        self, harness: Harness
    ) -> None:
        asked = trigger()
        await harness.stop()
        with pytest.raises(EngineUnavailable) as caught:
            await harness.engine.start(asked)
        assert caught.value.detail
        await harness.resume()

        async def taken() -> Started | None:
            try:
                return await harness.engine.start(asked)
            except EngineUnavailable:
                return None

        await until(taken)
        assert len(await ran(harness, asked.invocation_id)) == 1

    async def test_a_trigger_the_engine_will_never_take_is_rejected(self, harness: Harness) -> None:
        refused = harness.refused()
        if refused is None:
            pytest.skip("this engine takes everything")
        with pytest.raises(EngineRejected) as caught:
            await harness.engine.start(refused)
        assert caught.value.detail

    async def test_a_waiting_caller_gets_the_workflows_answer(self, harness: Harness) -> None:
        started = await harness.engine.start(trigger(field_one="1001", response=harness.endpoint.slot()))
        assert await self._answer(harness, started) == {"echo": "1001"}

    @staticmethod
    async def _answer(harness: Harness, started: Started) -> Any:
        if started.answer is not None:
            assert started.answer.status == 200
            return json.loads(started.answer.body)

        async def posted() -> list[Any]:
            return harness.endpoint.accepted

        [document] = await until(posted)
        assert document["status"] == 200
        return document["body"]

    async def test_an_answer_that_comes_too_late_is_turned_away_and_harms_nothing(
        self, harness: Harness
    ) -> None:
        harness.endpoint.closed = True
        started = await harness.engine.start(asked := trigger(response=harness.endpoint.slot()))
        await ran(harness, asked.invocation_id)
        if started.answer is None:

            async def turned_away() -> list[Any]:
                return harness.endpoint.late

            await until(turned_away)
        await harness.engine.start(after := trigger())
        await ran(harness, after.invocation_id)

    async def test_the_end_of_a_run_is_reported_or_left_to_the_callers_deadline(
        self, harness: Harness
    ) -> None:
        good, bad = (
            trigger(response=harness.endpoint.slot()),
            trigger(field_one="fail", response=harness.endpoint.slot()),
        )
        await harness.engine.start(good)
        if not harness.tells_the_end:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await harness.engine.ended(good.key)
            return
        await harness.engine.start(bad)
        async with asyncio.timeout(PATIENCE):
            assert await harness.engine.ended(good.key) == "completed"
            assert await harness.engine.ended(bad.key) == "failed"

    async def test_health_tells_and_never_raises(self, harness: Harness) -> None:
        assert (await harness.engine.health()).ok
        await harness.stop()
        down = await harness.engine.health()
        assert not down.ok
        assert down.detail
        await harness.resume()

        async def well() -> bool:
            return (await harness.engine.health()).ok

        await until(well)

    async def test_opening_does_not_wait_for_the_engine_and_closing_is_harmless_twice(
        self, harness: Harness
    ) -> None:
        await harness.stop()
        async with asyncio.timeout(20):
            await harness.engine.open()
        await harness.engine.close()
        await harness.engine.close()

    async def test_what_it_cannot_tell_is_none(self, harness: Harness) -> None:
        workflows, runs = await harness.engine.workflows(), await harness.engine.runs()
        assert workflows is None or isinstance(workflows, list)
        assert runs is None or isinstance(runs, list)
        await harness.engine.forget([trigger().key])
