import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import Any

import pytest
from standardwebhooks import Webhook

from engines.conformance import TRACE, AnswerEndpoint, EngineConformance, Harness, Played, endpoint, trigger
from postern.core.address import NOBODY
from postern.core.deliveries.delivery import End, EngineRejected, EngineUnavailable, ResponseSlot, Started
from postern.core.signatures.outgoing import signing_key
from postern.engines.handover import NEAR, read_ranges
from postern.engines.http import HttpEngine, read_headers
from postern.outbound.guard import FetchFailed
from stand_in import Answer, Raw, Received, Reply, nobody_accepts, stand_in
from support.waiting import PATIENCE

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
# Seconds for what never ends. Half of them is for connecting, which takes its time on a busy machine.
SHORT = 2.0


class HttpHarness(Played):
    """The engine beside a stand-in for n8n and its kind, which knows a delivery by its Idempotency-Key."""

    idempotent = hands_trace = True

    def __init__(self, gateway: AnswerEndpoint, inline: bool) -> None:
        super().__init__(gateway)
        self.inline = inline
        self.keys: set[str] = set()

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
            echo = json.dumps({"echo": document["fieldOne"]}).encode()
            return Reply(200, {"Content-Type": "application/json"}, echo)
        if slot := document["response"]:
            self.answer_later(slot["url"], slot["token"], document["fieldOne"])
        return Reply(202)


async def http_harness(inline: bool) -> AsyncIterator[Harness]:
    def engine(port: int) -> HttpEngine:
        return HttpEngine(f"http://127.0.0.1:{port}/webhook/postern", secret=SECRET, inline=inline)

    async with endpoint() as gateway, HttpHarness(gateway, inline).opened(engine) as made:
        yield made


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


NOT_SENT = "the workflow's answer cannot be sent"


class Closing(HttpEngine):
    """So that ``aclosing`` can close it."""

    aclose = HttpEngine.close


def slot(seconds: float = 10.0) -> ResponseSlot:
    return ResponseSlot("http://127.0.0.1:1/response", "one-time", time.time() + seconds)


async def started(answer: Answer, *, waits: float | None = None, **settings: Any) -> tuple[Started, Received]:
    async with stand_in(answer) as server, aclosing(Closing(server.url, **settings)) as engine:
        outcome = await engine.start(trigger(response=None if waits is None else slot(waits)))
        return outcome, server.received[0]


async def test_the_request_is_one_signed_document() -> None:
    _, request = await started(lambda _: Reply(200), secret=SECRET, headers={"Authorization": "Basic abc"})
    assert request.headers["idempotency-key"] == request.headers["webhook-id"]
    assert request.headers["authorization"] == "Basic abc"
    assert request.headers["traceparent"] == TRACE
    Webhook(SECRET).verify(request.body, request.headers)
    names = "webhookId fieldOne fieldTwo fieldThree fieldFour invocationId traceparent payload response end"
    assert list(request.json) == names.split()
    assert b'"total":10.00,"id":123456789012345678901234567890' in request.body


async def test_a_waiting_callers_slot_is_handed_over() -> None:
    _, request = await started(lambda _: Reply(200), waits=10)
    assert "webhook-signature" not in request.headers, "there is no secret"
    given = request.json["response"]
    assert (given["url"], given["token"]) == ("http://127.0.0.1:1/response", "one-time")
    assert given["deadline"].endswith("Z")


@pytest.mark.parametrize("status", [200, 201, 202, 204, 409])
async def test_it_has_started(status: int) -> None:
    outcome, _ = await started(lambda _: Reply(status))
    assert outcome == Started(1)


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504, 521, 530])
async def test_it_is_unavailable_and_its_retry_after_is_heard(status: int) -> None:
    with pytest.raises(EngineUnavailable) as caught:
        await started(lambda _: Reply(status, {"Retry-After": "7"}, b"busy\nnow"))
    assert caught.value.retry_after == 7
    assert caught.value.only_this == (status == 500)
    assert f"{status}: busy now" in caught.value.detail


@pytest.mark.parametrize("status", [400, 401, 403, 410, 422, 501])
async def test_it_has_rejected_the_trigger(status: int) -> None:
    with pytest.raises(EngineRejected):
        await started(lambda _: Reply(status))


async def test_an_inline_answer_keeps_its_bytes_and_what_may_be_sent_of_its_headers() -> None:
    headers = {"Content-Type": "image/gif", "X-Shop": "a", "Set-Cookie": "b=c", "Server": "n8n"}
    headers |= {"X-Powered-By": "Express", "Strict-Transport-Security": "max-age=1"}
    outcome, _ = await started(lambda _: Reply(201, headers, b"GIF89a\xff"), inline=True, waits=10)
    assert outcome.answer is not None
    assert (outcome.answer.status, outcome.answer.body) == (201, b"GIF89a\xff")
    assert outcome.answer.headers == (("content-type", "image/gif"), ("x-shop", "a"))


@pytest.mark.parametrize(("status", "named", "heard"), [(200, "404", 404), (201, "", 201)])
async def test_an_inline_answer_may_name_another_status_in_a_header(
    status: int, named: str, heard: int
) -> None:
    reply = Reply(status, {"X-Postern-Status": named}, b"{}")
    outcome, _ = await started(lambda _: reply, inline=True, waits=10)
    assert outcome.answer is not None
    # Of what it is, the engine said nothing: a browser shall not guess.
    assert outcome.answer.status == heard
    assert ("content-type", "application/octet-stream") in outcome.answer.headers


@pytest.mark.parametrize(
    # Accepted, not inline, nobody waits, and a slot whose time is over.
    ("status", "inline", "waits"),
    [(202, True, 10), (200, False, 10), (200, True, None), (200, True, -10)],
)
async def test_what_is_not_an_answer_is_not_taken_for_one(
    status: int, inline: bool, waits: float | None
) -> None:
    outcome, _ = await started(lambda _: Reply(status, body=b"{}"), inline=inline, waits=waits)
    assert outcome == Started(1)


async def silent(_: Received) -> Reply:
    await asyncio.sleep(60)
    return Reply(200)


async def test_an_inline_workflow_slower_than_its_caller_has_started_all_the_same() -> None:
    outcome, _ = await started(silent, inline=True, waits=SHORT)
    assert outcome == Started(1)


async def test_an_engine_that_was_not_reached_has_started_nothing_though_the_gateway_had_no_turn() -> None:
    """All limits are over when it has one: connecting, holding, and the caller's own."""
    with nobody_accepts() as url:
        async with aclosing(Closing(url, inline=True)) as engine:
            asyncio.get_running_loop().call_later(0.01, time.sleep, SHORT)
            with pytest.raises(EngineUnavailable, match="cannot be reached"):
                await engine.start(trigger(response=slot(SHORT)))


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (Reply(200, body=b"late"), b"late"),
        (Reply(500, body=b"no order"), "the engine answered 500: no order"),
        (Reply(404, body=b"no flow"), "the engine answered 404: no flow"),
        (Reply(503), "the engine answered 503"),
        (Reply(200, {"X-Postern-Status": "teapot"}), f"{NOT_SENT}: status must be a number from 200 to 599"),
    ],
)
async def test_an_inline_answer_that_takes_longer_is_brought_by_the_end(
    answer: Reply, outcome: bytes | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("postern.engines.http.LONGEST_HOLD", 0.05)
    release = asyncio.Event()

    async def slow(_: Received) -> Reply:
        await release.wait()
        return answer

    async with stand_in(slow) as server, aclosing(Closing(server.url, inline=True)) as engine:
        asked = trigger(response=slot())
        assert await engine.start(asked) == Started(1)
        release.set()
        ended = await asyncio.wait_for(engine.ended(asked.key), PATIENCE)
    assert (ended.error if isinstance(ended, End) else ended.body) == outcome


@pytest.mark.parametrize("waits", [10, None])
async def test_its_workflow_works_from_the_request_on_and_not_from_its_answer(waits: float | None) -> None:
    came: list[float] = []

    async def works(_: Received) -> Reply:
        came.append(time.time())
        await asyncio.sleep(0.02)
        return Reply(200, body=b"{}")

    outcome, _ = await started(works, inline=True, waits=waits)
    assert outcome.at is not None and outcome.at <= came[0]


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (Reply(500, body=b"no order"), "the engine answered 500: no order"),
        *(
            (Reply(200, {"X-Postern-Status": said}, b"{}"), f"{NOT_SENT}: status must be a number from 200 to 599")
            for said in ("101", "4044", "0404", "teapot", "-404", "199", "600")
        ),
    ],
)  # fmt: skip
async def test_an_inline_workflow_that_fails_was_started_and_is_not_run_again(reply: Reply, why: str) -> None:
    outcome, _ = await started(lambda _: reply, inline=True, waits=10)
    assert (outcome.runs, outcome.answer, outcome.failed) == (1, None, why)


def breaks_off(status: int) -> Raw:
    """An answer whose body ends before it should."""

    async def half(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 %d Said\r\nContent-Length: 100\r\n\r\nhalf" % status)

    return Raw(half)


def goes_on(status: int) -> Raw:
    """An answer that never ends."""

    async def drip(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 %d Said\r\nContent-Length: 100000\r\n\r\nhalf" % status)
        await asyncio.sleep(60)

    return Raw(drip)


def compressed(status: int) -> Reply:
    return Reply(status, {"Content-Encoding": "br"}, b"hello")


def large(status: int) -> Reply:
    return Reply(status, body=b"x" * 1_100_000)


@pytest.mark.parametrize(
    ("reply", "timeout"),
    [(breaks_off, PATIENCE), (goes_on, SHORT), (compressed, PATIENCE), (large, PATIENCE)],
)
async def test_of_an_answer_that_is_not_read_to_its_end_the_status_is_heard(
    reply: Callable[[int], Answer], timeout: float
) -> None:
    async def heard(status: int) -> Started:
        return (await started(lambda _: reply(status), timeout=timeout))[0]

    async def not_started(status: int, failed: type[Exception]) -> None:
        with pytest.raises(failed, match=f"^the engine answered {status}; "):
            await heard(status)

    async with asyncio.TaskGroup() as group:
        taken = [group.create_task(heard(status)) for status in (200, 202, 409)]
        group.create_task(not_started(422, EngineRejected))
        group.create_task(not_started(503, EngineUnavailable))
    assert [one.result() for one in taken] == [Started(1)] * 3


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (breaks_off, "the answer is not valid HTTP"),
        (compressed, "the answer is compressed in a way that was not asked for"),
        (large, "the answer is larger than 1048576 bytes"),
    ],
)
async def test_the_caller_of_an_answer_that_cannot_be_read_does_not_wait_for_another(
    reply: Callable[[int], Answer], why: str
) -> None:
    outcome, _ = await started(lambda _: reply(200), inline=True, waits=10)
    assert (outcome.runs, outcome.answer) == (1, None)
    assert outcome.failed.startswith(f"{NOT_SENT}: {why}")
    # Another one comes by callback.
    assert (await started(lambda _: reply(202), inline=True, waits=10))[0] == Started(1)


@pytest.mark.parametrize("status", [200, 404])
async def test_an_inline_answer_that_does_not_end_while_its_caller_waits_has_started(status: int) -> None:
    outcome, _ = await started(lambda _: goes_on(status), inline=True, waits=SHORT)
    assert outcome == Started(1)


async def nonsense(writer: asyncio.StreamWriter) -> None:
    writer.write(b"SSH-2.0-OpenSSH_9\r\n\r\n")


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Raw(nonsense), "not valid HTTP: Bad status line: Expected HTTP/"),
        (Reply(307, {"Location": "http://[::::/"}), "a redirect, and to no URL"),
        (Reply(307, {"Location": "/elsewhere"}), "a redirect to http://127.0.0.1:"),
    ],
)
async def test_an_engine_that_has_answered_was_reached(answer: Raw | Reply, why: str) -> None:
    with pytest.raises(EngineUnavailable) as caught:
        await started(lambda _: answer)
    assert caught.value.detail.startswith(f"the engine's answer cannot be read: the answer is {why}")


async def test_an_engine_that_takes_too_long_was_reached() -> None:
    with pytest.raises(EngineUnavailable) as caught:
        await started(silent, timeout=SHORT)
    assert caught.value.detail == "the engine did not answer in time: no complete answer within 2 seconds"


@pytest.mark.parametrize("status", [400, 503])
async def test_what_an_engine_repeats_of_our_secrets_is_kept_nowhere(status: int) -> None:
    """A page for developers shows the request that was wrong."""

    def repeat(request: Received) -> Reply:
        shown = json.dumps({"why": "wrong", "by": request.headers["authorization"], **request.headers})
        return Reply(status, body=shown.encode())

    headers = {"Authorization": "Bearer engine-secret", "X-Key": "engine-secret-two"}
    with pytest.raises((EngineRejected, EngineUnavailable)) as caught:
        await started(repeat, headers=headers, waits=10)
    detail = str(caught.value)
    assert "engine-secret" not in detail and "two" not in detail
    assert "Bearer ***" in detail
    with pytest.raises((EngineRejected, EngineUnavailable)) as caught:
        await started(lambda request: Reply(status, body=request.body[-120:]), waits=10)
    assert "one-time" not in str(caught.value)
    assert "***" in str(caught.value)


async def test_a_server_that_sends_back_what_it_hears_makes_no_secret_known() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.read(10_000))
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with aclosing(Closing(f"http://127.0.0.1:{port}/hook?key=a-long-secret")) as engine:
        with pytest.raises(EngineUnavailable) as caught:
            await engine.start(trigger())
    server.close()
    assert "POST /hook?***" in caught.value.detail
    assert "a-long-secret" not in caught.value.detail


async def test_private_addresses_can_be_shut() -> None:
    with pytest.raises(EngineUnavailable) as caught:
        await started(lambda _: Reply(200), allowed_ranges=NOBODY)
    assert "does not connect there" in caught.value.detail


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
    near = read_ranges("10.1.2.0/24, ::1")
    assert near.allows("10.1.2.3") and near.allows("::1") and not near.allows("10.1.3.1")
