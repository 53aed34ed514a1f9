"""The generic HTTP engine beside a real Node-RED."""

import json
import shutil
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx2
import pytest
from msgspec.structs import replace

from engines.conformance import AnswerEndpoint, EngineConformance, Harness, endpoint, trigger
from engines.node_red import node_red
from engines.relay import Relay
from postern.core.deliveries.delivery import Started
from postern.engines.http import HttpEngine
from support.plain_http import WITHOUT_TLS


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    if not (shutil.which("npm") and shutil.which("node")):
        pytest.skip("NODE-RED WAS NOT TESTED: there is no npm on this machine")
    with node_red(tmp_path_factory.mktemp("node-red")) as port:
        yield port


class NodeRedHarness:
    idempotent = hands_trace = True
    tells_the_end = False

    def __init__(self, gateway: AnswerEndpoint, port: int, path: str) -> None:
        self.endpoint = gateway
        self.relay = Relay(port)
        self.documents = f"http://127.0.0.1:{port}/{path}/ran"
        self.path = path

    async def resume(self) -> None:
        await self.relay.open()

    async def stop(self) -> None:
        await self.relay.cut()

    async def ran(self) -> list[dict[str, Any]]:
        async with httpx2.AsyncClient(trust_env=False, verify=WITHOUT_TLS) as client:
            found: list[dict[str, Any]] = (await client.get(self.documents)).json()
            return found

    def refused(self) -> Any:
        return trigger(field_one="refuse")


async def beside(port: int, path: str) -> AsyncIterator[Harness]:
    async with endpoint() as gateway:
        made = NodeRedHarness(gateway, port, path)
        await made.resume()
        made.engine = HttpEngine(f"http://127.0.0.1:{made.relay.port}/{path}", inline=path == "inline")
        await made.engine.open()
        yield made
        await made.engine.close()
        await made.stop()


class TestNodeRedInline(EngineConformance):
    @pytest.fixture
    async def harness(self, port: int) -> AsyncIterator[Harness]:
        async for made in beside(port, "inline"):
            yield made


class TestNodeRedWithCallback(EngineConformance):
    @pytest.fixture
    async def harness(self, port: int) -> AsyncIterator[Harness]:
        async for made in beside(port, "later"):
            yield made


async def test_the_example_flow_answers_the_order_look_up(port: int) -> None:
    async with endpoint() as gateway:
        engine = HttpEngine(f"http://127.0.0.1:{port}/postern", inline=True)
        asked = trigger(field_one="1001", response=gateway.slot())
        started = await engine.start(asked)
        assert started.answer is not None
        assert json.loads(started.answer.body) == {
            "orders": [{"name": "#1001", "financialStatus": "PAID", "fulfillmentStatus": "FULFILLED"}]
        }
        assert ("content-type", "application/json; charset=utf-8") in started.answer.headers
        assert await engine.start(asked) == Started(1)
        others = await engine.start(replace(trigger(response=gateway.slot()), webhook_id="wh_other"))
        assert others.answer is not None and others.answer.status == 204
        await engine.close()
