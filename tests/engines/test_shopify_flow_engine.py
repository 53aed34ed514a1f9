import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from engines.conformance import EngineConformance, Harness, Played, endpoint, trigger
from postern.core.deliveries.delivery import EngineRejected, EngineUnavailable, Started
from postern.engines.handover import NEAR
from postern.engines.shopify_flow import ALSO, ShopifyFlowEngine
from postern.outbound.fetch import Fetcher
from stand_in import Answer, Received, Reply, stand_in


def json_reply(document: Any, status: int = 200, headers: dict[str, str] | None = None) -> Reply:
    typed = {"Content-Type": "application/json", **(headers or {})}
    return Reply(status, typed, json.dumps(document).encode())


def refusing(*errors: dict[str, Any]) -> dict[str, Any]:
    return {"data": {"flowTriggerReceive": {"userErrors": errors}}}


def engine_at(url: str, **settings: Any) -> ShopifyFlowEngine:
    engine = ShopifyFlowEngine("shop.myshopify.com", "shpat_secret", **settings)
    engine._url, engine._fetcher = url, Fetcher(allowed_ranges=NEAR)
    return engine


class FlowHarness(Played):
    """The engine beside a stand-in for Shopify: it answers as the Admin API does, and runs one workflow as
    Flow would."""

    idempotent = hands_trace = False

    def run(self, request: Received) -> Reply:
        if request.headers["x-shopify-access-token"] != "shpat_secret":
            return json_reply({"errors": "[API] Invalid API key or access token"}, 401)
        if "flowTriggerReceive" not in request.json["query"]:
            return json_reply({"data": {"__typename": "QueryRoot"}})
        variables = request.json["variables"]
        if variables["payload"]["fieldOne"] == "refuse":
            return json_reply(refusing({"field": ["handle"], "message": "Invalid handle"}))
        document = {**variables["payload"], "response": None}
        if url := document["responseUrl"]:
            document["response"] = {"url": url, "token": document["responseToken"]}
            self.answer_later(url, document["responseToken"], document["fieldOne"])
        self.documents.append(document)
        return json_reply(refusing())


@pytest.fixture
async def harness() -> AsyncIterator[Harness]:
    def engine(port: int) -> ShopifyFlowEngine:
        return engine_at(f"http://127.0.0.1:{port}/graphql.json", also_send=ALSO)

    async with endpoint() as gateway, FlowHarness(gateway).opened(engine) as made:
        yield made


class TestShopifyFlow(EngineConformance): ...


async def started(answer: Answer, **settings: Any) -> tuple[Started, list[Received]]:
    async with stand_in(answer) as server:
        engine = engine_at(server.url, **settings)
        try:
            return await engine.start(trigger()), server.received
        finally:
            await engine.close()


async def test_a_start_is_one_mutation_with_the_six_variables() -> None:
    outcome, [request] = await started(lambda _: json_reply(refusing()), handle="my-trigger")
    assert outcome == Started(1)
    assert request.json["variables"]["handle"] == "my-trigger"
    names = "fieldFour fieldOne fieldThree fieldTwo invocationId webhookId"
    assert sorted(request.json["variables"]["payload"]) == names.split()


async def test_the_payload_is_sent_where_the_trigger_declares_it() -> None:
    _, [request] = await started(lambda _: json_reply(refusing()), also_send=["payload"])
    assert request.json["variables"]["payload"]["payload"].startswith('{"orderNumber":"1001"')


async def test_a_trigger_over_the_limit_is_rejected_without_asking() -> None:
    with pytest.raises(EngineRejected) as caught:
        await started(lambda _: json_reply(refusing()), payload_limit=50)
    assert "50" in caught.value.detail


THROTTLED = {"errors": [{"message": "Throttled", "extensions": {"code": "THROTTLED"}}]}
COST = {"requestedQueryCost": 110, "throttleStatus": {"currentlyAvailable": 10, "restoreRate": 50}}


@pytest.mark.parametrize(
    ("reply", "seconds"),
    [
        *((json_reply({}, status, {"Retry-After": "2.0"}), 2) for status in (429, 430, 500, 503)),
        # Inside a 200: computed from the bucket, or a second where none is told.
        (json_reply({**THROTTLED, "extensions": {"cost": COST}}), 2),
        (json_reply(THROTTLED), 1),
    ],
)
async def test_a_busy_shop_is_unavailable_for_as_long_as_it_says(reply: Reply, seconds: float) -> None:
    with pytest.raises(EngineUnavailable) as caught:
        await started(lambda _: reply)
    assert caught.value.retry_after == seconds


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"errors": [{"message": "Field 'flowTriggerReceive' doesn't exist"}]}, "doesn't exist"),
        ({"errors": "Unauthorized"}, "Unauthorized"),
        (refusing({"field": None, "message": "no such trigger"}), "no such trigger"),
    ],
)
async def test_errors_are_rejections_in_shopifys_own_words(document: Any, words: str) -> None:
    with pytest.raises(EngineRejected, match=words):
        await started(lambda _: json_reply(document))


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 422])
async def test_other_statuses_are_rejections_without_the_access_token(status: int) -> None:
    with pytest.raises(EngineRejected) as caught:
        await started(lambda _: json_reply({"errors": "no"}, status))
    assert "shpat" not in str(caught.value)


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"[]", b"{}", b'{"data":null}', b'{"data":{"flowTriggerReceive":null}}']
)
async def test_an_answer_that_says_nothing_is_asked_for_again(body: bytes) -> None:
    with pytest.raises(EngineUnavailable):
        await started(lambda _: Reply(200, {}, body))


def test_a_shop_is_written_as_shopify_names_it_and_only_what_exists_can_be_sent_besides() -> None:
    shop = "shop.myshopify.com"
    for wrong in ("", "shop", "shop.example", f"{shop}/admin", f"https://{shop}", "a.b.myshopify.com"):
        with pytest.raises(ValueError, match="myshopify"):
            ShopifyFlowEngine(wrong, "shpat_secret")
    with pytest.raises(ValueError, match="secrets"):
        ShopifyFlowEngine(shop, "shpat_secret", also_send=["secrets"])
