import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import httpx2
import pytest
from standardwebhooks import Webhook

from engines.conformance import AnswerEndpoint, EngineConformance, Harness, endpoint, trigger
from postern.core.address import NOBODY
from postern.core.deliveries.delivery import EngineRejected, EngineUnavailable, ResponseSlot, Started
from postern.engines.handover import NEAR, read_ranges
from postern.engines.http import HttpEngine, read_headers, signing_key
from postern.outbound.guard import FetchFailed
from stand_in import Answer, Raw, Received, Reply, stand_in
from support.plain_http import WITHOUT_TLS

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


class HttpHarness:
    """The engine beside a stand-in for n8n and its kind, which knows a delivery by its Idempotency-Key."""

    idempotent = True
    tells_the_end = False

    def __init__(self, gateway: AnswerEndpoint, inline: bool) -> None:
        self.endpoint = gateway
        self.inline = inline
        self.documents: list[dict[str, Any]] = []
        self.keys: set[str] = set()
        self.answers: set[asyncio.Task[None]] = set()
        self.running = AsyncExitStack()
        self.port = 0

    async def resume(self) -> None:
        server = await self.running.enter_async_context(stand_in(self.run, port=self.port))
        self.port = server.port

    async def stop(self) -> None:
        await self.running.aclose()

    def run(self, request: Received) -> Reply:
        Webhook(SECRET).verify(request.body, request.headers)
        if request.headers["idempotency-key"] in self.keys:
            return Reply(409)
        self.keys.add(request.headers["idempotency-key"])
        document = request.json
        if document["fieldOne"] == "refuse":
            return Reply(400, body=b"no such workflow")
        self.documents.append(document)
        if document["response"] and self.inline:
            return Reply(
                200, {"Content-Type": "application/json"}, json.dumps({"echo": document["fieldOne"]}).encode()
            )
        if document["response"]:
            task = asyncio.create_task(self.answer(document))
            self.answers.add(task)
        return Reply(202)

    async def answer(self, document: dict[str, Any]) -> None:
        slot = document["response"]
        async with httpx2.AsyncClient(trust_env=False, verify=WITHOUT_TLS) as client:
            answer = {"status": 200, "headers": {}, "body": {"echo": document["fieldOne"]}}
            await client.post(slot["url"], json=answer, headers={"Authorization": f"Bearer {slot['token']}"})

    async def ran(self) -> list[dict[str, Any]]:
        return self.documents

    def refused(self) -> Any:
        return trigger(field_one="refuse")


async def http_harness(inline: bool) -> AsyncIterator[Harness]:
    async with endpoint() as gateway:
        made = HttpHarness(gateway, inline)
        await made.resume()
        made.engine = HttpEngine(
            f"http://127.0.0.1:{made.port}/webhook/postern", secret=SECRET, inline=inline
        )
        await made.engine.open()
        yield made
        await made.engine.close()
        await asyncio.gather(*made.answers)
        await made.stop()


class TestHttpWithCallback(EngineConformance):
    @pytest.fixture
    async def harness(self) -> AsyncIterator[Harness]:
        async for made in http_harness(inline=False):
            yield made


class TestHttpInline(EngineConformance):
    @pytest.fixture
    async def harness(self) -> AsyncIterator[Harness]:
        async for made in http_harness(inline=True):
            yield made


pytestmark = pytest.mark.anyio


def slot(seconds: float = 10.0) -> ResponseSlot:
    return ResponseSlot("http://127.0.0.1:1/response", "one-time", time.time() + seconds)


async def started(answer: Answer, *, waits: float | None = None, **settings: Any) -> tuple[Started, Received]:
    async with stand_in(answer) as server:
        engine = HttpEngine(server.url, **settings)
        try:
            return await engine.start(
                trigger(response=None if waits is None else slot(waits))
            ), server.received[0]
        finally:
            await engine.close()


async def test_the_request_is_one_signed_document() -> None:
    _, request = await started(lambda _: Reply(200), secret=SECRET, headers={"Authorization": "Basic abc"})
    assert request.headers["idempotency-key"] == request.headers["webhook-id"]
    assert request.headers["authorization"] == "Basic abc"
    Webhook(SECRET).verify(request.body, request.headers)
    assert list(request.json) == [
        "webhookId",
        "fieldOne",
        "fieldTwo",
        "fieldThree",
        "fieldFour",
        "invocationId",
        "payload",
        "response",
        "end",
    ]
    assert b'"total":10.00,"id":123456789012345678901234567890' in request.body


async def test_without_a_secret_nothing_is_signed() -> None:
    _, request = await started(lambda _: Reply(200))
    assert "webhook-signature" not in request.headers


async def test_a_waiting_callers_slot_is_handed_over() -> None:
    _, request = await started(lambda _: Reply(200), waits=10)
    given = request.json["response"]
    assert (given["url"], given["token"]) == ("http://127.0.0.1:1/response", "one-time")
    assert given["deadline"].endswith("Z")


@pytest.mark.parametrize("status", [200, 201, 202, 204, 409])
async def test_it_has_started(status: int) -> None:
    outcome, _ = await started(lambda _: Reply(status))
    assert outcome == Started(1)


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
async def test_it_is_unavailable_and_its_retry_after_is_heard(status: int) -> None:
    with pytest.raises(EngineUnavailable) as caught:
        await started(lambda _: Reply(status, {"Retry-After": "7"}, b"busy\nnow"))
    assert caught.value.retry_after == 7
    assert f"{status}: busy now" in caught.value.detail


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 422, 501])
async def test_it_has_rejected_the_trigger(status: int) -> None:
    with pytest.raises(EngineRejected):
        await started(lambda _: Reply(status))


async def test_a_redirect_is_not_followed_and_loses_nothing() -> None:
    with pytest.raises(EngineUnavailable) as caught:
        await started(lambda _: Reply(308, {"Location": "http://127.0.0.1:1/"}))
    assert "redirect" in caught.value.detail


async def test_an_engine_that_says_nothing_is_unavailable() -> None:
    async def silent(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(60)

    with pytest.raises(EngineUnavailable):
        await started(lambda _: Raw(silent), timeout=0.2)


async def test_an_inline_answer_keeps_its_bytes_and_what_may_be_sent_of_its_headers() -> None:
    headers = {
        "Content-Type": "image/gif",
        "X-Shop": "a",
        "Set-Cookie": "b=c",
        "Server": "n8n",
        "X-Powered-By": "Express",
        "Strict-Transport-Security": "max-age=1",
    }
    outcome, _ = await started(lambda _: Reply(201, headers, b"GIF89a\xff"), inline=True, waits=10)
    assert outcome.answer is not None
    assert (outcome.answer.status, outcome.answer.body) == (201, b"GIF89a\xff")
    assert outcome.answer.headers == (("content-type", "image/gif"), ("x-shop", "a"))


async def test_an_inline_answer_names_another_status_in_a_header() -> None:
    outcome, _ = await started(
        lambda _: Reply(200, {"X-Postern-Status": "404"}, b"{}"), inline=True, waits=10
    )
    assert outcome.answer is not None
    # Of what it is, the engine said nothing: a browser shall not guess.
    assert (outcome.answer.status, outcome.answer.headers) == (
        404,
        (("content-type", "application/octet-stream"),),
    )


@pytest.mark.parametrize(
    ("status", "inline", "waits"), [(202, True, 10), (200, False, 10), (200, True, None)]
)
async def test_what_is_not_an_answer_is_not_taken_for_one(
    status: int, inline: bool, waits: float | None
) -> None:
    outcome, _ = await started(lambda _: Reply(status, body=b"ok"), inline=inline, waits=waits)
    assert outcome == Started(1)


async def test_an_inline_workflow_slower_than_its_caller_has_started_all_the_same() -> None:
    async def slow(_: Received) -> Reply:
        await asyncio.sleep(60)
        return Reply(200)

    outcome, _ = await started(slow, inline=True, waits=0.5)
    assert outcome == Started(1)


@pytest.mark.parametrize(("status", "outcome"), [(200, 200), (500, "failed"), (404, "failed")])
async def test_an_inline_answer_that_takes_longer_is_brought_by_the_end(
    status: int, outcome: int | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("postern.engines.http.LONGEST_HOLD", 0.05)
    release = asyncio.Event()

    async def slow(_: Received) -> Reply:
        await release.wait()
        return Reply(status, {"Content-Type": "text/plain"}, b"late")

    async with stand_in(slow) as server:
        engine = HttpEngine(server.url, inline=True)
        asked = trigger(response=slot())
        assert await engine.start(asked) == Started(1)
        release.set()
        async with asyncio.timeout(10):
            ended = await engine.ended(asked.key)
        await engine.close()
    assert ended == outcome if isinstance(ended, str) else (ended.status, ended.body) == (outcome, b"late")


@pytest.mark.parametrize("waits", [10, None])
async def test_its_workflow_works_from_the_request_on_and_not_from_its_answer(waits: float | None) -> None:
    came: list[float] = []

    async def works(_: Received) -> Reply:
        came.append(time.time())
        await asyncio.sleep(0.02)
        return Reply(200, body=b"{}")

    outcome, _ = await started(works, inline=True, waits=waits)
    assert outcome.at is not None and outcome.at <= came[0]


async def test_a_slot_whose_time_is_over_makes_nobody_wait() -> None:
    outcome, _ = await started(lambda _: Reply(200, body=b"{}"), inline=True, waits=-10)
    assert outcome == Started(1)


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (Reply(500, body=b"no order"), "the engine answered 500: no order"),
        (
            Reply(200, {"X-Postern-Status": "101"}, b"{}"),
            "the workflow's answer cannot be sent: status must be",
        ),
    ],
)
async def test_an_inline_workflow_that_fails_was_started_and_is_not_run_again(reply: Reply, why: str) -> None:
    outcome, _ = await started(lambda _: reply, inline=True, waits=10)
    assert (outcome.runs, outcome.answer) == (1, None)
    assert outcome.failed.startswith(why)


async def test_an_answer_that_is_too_large_has_started_all_the_same() -> None:
    outcome, _ = await started(lambda _: Reply(200, body=b"x" * 1_100_000), inline=True, waits=10)
    assert outcome == Started(1)


async def test_private_addresses_can_be_shut() -> None:
    with pytest.raises(EngineUnavailable) as caught:
        await started(lambda _: Reply(200), allowed_ranges=NOBODY)
    assert "does not connect there" in caught.value.detail


async def test_a_metadata_service_is_never_an_engine() -> None:
    engine = HttpEngine("http://169.254.169.254/")
    assert not (await engine.health()).ok
    with pytest.raises(EngineUnavailable):
        await engine.start(trigger())
    await engine.close()


@pytest.mark.parametrize("url", ["", "n8n:5678/webhook", "ftp://n8n/", "http://user:pw@n8n/"])
def test_a_url_that_cannot_work_is_refused_at_once(url: str) -> None:
    with pytest.raises(FetchFailed):
        HttpEngine(url)


@pytest.mark.parametrize("secret", ["whsec_", "whsec_c2hvcnQ=", "whsec_***", "not base64 at all"])
def test_a_secret_that_is_none_is_refused_at_once(secret: str) -> None:
    with pytest.raises(ValueError, match="secret"):
        signing_key(secret)


def test_headers_are_read_as_a_json_object() -> None:
    assert read_headers("") == {}
    assert read_headers('{"Authorization": "Bearer x"}') == {"Authorization": "Bearer x"}
    for wrong in ("Authorization: x", "[]", '{"a": 1}'):
        with pytest.raises(ValueError, match="JSON object"):
            read_headers(wrong)


def test_where_the_engine_may_be_is_read_from_one_line() -> None:
    assert read_ranges("") is NEAR
    assert not read_ranges("none").allows("127.0.0.1")
    assert read_ranges("10.1.2.0/24, ::1").entries == ("10.1.2.0/24", "::1")
