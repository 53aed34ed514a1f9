"""A webhook's own target: what it is sent, what becomes of its answers, and that nothing else goes there."""

import base64
import random
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from postern.core.address import NOBODY
from postern.core.problems import Refused
from postern.core.signatures.outgoing import signature, signing_key
from postern.surfaces.console.views.history import sentences
from postern.usecases.deliveries.dispatch import Dispatcher
from postern.usecases.history.endings import EndingsLoop
from postern.usecases.webhooks import as_code, webhooks
from postern.usecases.webhooks.views import Webhook
from support.house import OWNER, House, a_house
from support.raw_server import program
from support.server import Answer, Asked, serving

KEY = "whsec_" + base64.b64encode(b"k" * 32).decode()
NEAR = {"POSTERN_OUTBOUND_ALLOWED": "127.0.0.1"}


@pytest.fixture
async def house(tmp_path: Any) -> Any:
    async with a_house(tmp_path, **NEAR) as house:
        yield house


class Receiver:
    """Answers as it is told to, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.answer: Answer = 200, "text/plain", b"thanks"
        self.url = ""

    def __call__(self, asked: Asked) -> Answer:
        self.asked.append(asked)
        return self.answer


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    one = Receiver()
    with serving(one) as one.url:
        yield one


async def deliver(house: House, webhook: Webhook) -> None:
    dispatcher = Dispatcher(house.gateway, webhook.id)
    while await dispatcher.round():
        await dispatcher.finish()
        dispatcher.stop()  # it does not pause


def plain(asked: Asked) -> dict[str, str]:
    return {name.lower(): value for name, value in asked.headers.items()}


async def test_without_forward_it_gets_the_trigger_signed_with_its_own_key(
    house: House, receiver: Receiver
) -> None:
    webhook = await house.webhook(
        target={
            "url": receiver.url + "/hook",
            "signingSecret": KEY,
            "headers": {"Authorization": "Bearer s"},
        },
        fieldMapping={"fieldOne": "id"},
    )
    call = await house.recorded(webhook, b'{"id": 7}')
    house.gateway.site.callback_url = "http://127.0.0.1:8080"
    assert await house.dispatcher.round() == 0, "the engine's lane has nothing of it"
    await deliver(house, webhook)
    (asked,) = receiver.asked
    sent, headers = msgspec.json.decode(asked.body), plain(asked)
    assert (asked.method, asked.path, sent["fieldOne"], sent["payload"]) == ("POST", "/hook", "7", {"id": 7})
    assert headers["authorization"] == "Bearer s"
    assert sent["end"]["url"].startswith("https://hooks.example.com/"), "not the embedded engine's way"
    assert headers["idempotency-key"] == headers["webhook-id"] == f"{call}.1"
    signed = signature(signing_key(KEY), f"{call}.1", int(headers["webhook-timestamp"]), asked.body)
    assert headers["webhook-signature"] == signed
    (delivery,) = (await house.story(call)).deliveries
    assert (delivery.state, delivery.log[-1]["workflows"]) == ("started", [receiver.url + "/hook"])
    assert house.engine.started == {}
    (item,) = await house.history()
    assert sentences.reason(item) == f"{receiver.url}/hook has taken it."


HOP = {
    "connection": "x-mine, keep-alive",
    "x-mine": "1",
    "te": "trailers",
    "keep-alive": "5",
    "proxy-authenticate": "x",
}


async def test_the_original_is_the_call_as_it_came(house: House, receiver: Receiver) -> None:
    webhook = await house.webhook(
        authentication={"method": "token", "token": "very-secret-token"},
        target={"url": receiver.url + "/in?to=erp", "forward": "original"},
    )
    body = b'{"a":  1, "u": "\xc3\xa9"}\n'
    headers = {
        "X-Api-Key": "very-secret-token",
        "User-Agent": "Shop/1",
        "content-type": "application/json; charset=utf-8",
        "X-Shop-Topic": "orders/create",
        "X-Hub-Signature-256": "sha256=abc",
        "Cookie": "session=1",
        **HOP,
    }
    call = await house.recorded(webhook, body, headers=headers, query="a=1&token=x&b=%2F+%C3%A9")
    await deliver(house, webhook)
    (asked,) = receiver.asked
    got = plain(asked)
    assert (asked.method, asked.path, asked.body) == ("POST", "/in?to=erp&a=1&b=%2F+%C3%A9", body)
    for name in ("User-Agent", "content-type", "X-Shop-Topic", "X-Hub-Signature-256"):
        assert got[name.lower()] == headers[name]
    assert not got.keys() & {"x-api-key", "cookie", "x-mine", "te", "keep-alive", "proxy-authenticate"}
    assert got["idempotency-key"] == got["webhook-id"] == f"{call}.1"
    assert got["webhook-signature"].startswith("v1,")


async def test_what_the_sender_signs_by_standard_webhooks_stays_its_own(
    house: House, receiver: Receiver
) -> None:
    webhook = await house.webhook(target={"url": receiver.url, "forward": "original"})
    theirs = {
        "webhook-id": "msg_1",
        "webhook-timestamp": "1",
        "webhook-signature": "v1,x",
        "Idempotency-Key": "k",
    }
    await house.recorded(webhook, headers=theirs)
    await deliver(house, webhook)
    got = plain(receiver.asked[0])
    assert {name: got[name.lower()] for name in theirs} == theirs


async def test_headers_hold_values_of_the_call_and_nothing_else_of_it(
    house: House, receiver: Receiver
) -> None:
    headers = {"X-Session": "{fieldOne}", "X-About": "call {invocationId} of {webhookId}; {fieldTwo}."}
    webhook = await house.webhook(
        target={"url": receiver.url, "headers": headers}, fieldMapping={"fieldOne": "a", "fieldTwo": "b"}
    )
    call = await house.recorded(webhook, msgspec.json.encode({"a": "x\r\nEvil: 1 é", "b": "y" * 5000}))
    await deliver(house, webhook)
    got = plain(receiver.asked[0])
    assert got["x-session"] == "x%0D%0AEvil: 1 %C3%A9"
    assert got["x-about"] == f"call {call} of {webhook.id}; {'y' * 1000}."
    assert "evil" not in got


BAD = {
    "url": "ftp://example.com",
    "forward": "raw",
    "timeoutSeconds": 16,
    "signingSecret": "short",
    "headers": {"Content-Type": "a", "X-Who": "{fieldFive}", "A b": "c"},
}


async def test_every_wrong_part_is_named_with_its_place_all_at_once(house: House) -> None:
    with pytest.raises(Refused) as refused:
        await house.webhook(target=BAD)
    wrong = {one.field for one in refused.value.errors}
    assert wrong == {
        "target.url", "target.forward", "target.timeoutSeconds", "target.signingSecret",
        "target.headers.Content-Type", "target.headers.X-Who", "target.headers.A b",
    }  # fmt: skip


async def test_a_private_address_is_refused_and_so_is_one_that_a_name_or_redirect_leads_to(
    house: House, receiver: Receiver
) -> None:
    house.gateway.outbound.allowed = NOBODY  # as a process that sends knows it
    with pytest.raises(Refused) as refused:
        await house.webhook(target={"url": "http://10.0.0.1/"})
    house.gateway.outbound.allowed = None
    assert refused.value.errors[0].field == "target.url"
    receiver.answer = 307, {"Location": "http://169.254.169.254/latest"}, b""
    webhook = await house.webhook(target={"url": receiver.url, "forward": "original"})
    call = await house.recorded(webhook)
    await deliver(house, webhook)
    (delivery,) = (await house.story(call)).deliveries
    assert delivery.state == "queued"
    assert "redirect to http://169.254.169.254/latest; redirects are not followed here" in delivery.error
    assert len(receiver.asked) == 1


async def test_nothing_is_sent_to_an_address_that_is_not_opened(tmp_path: Path, receiver: Receiver) -> None:
    async with a_house(tmp_path) as house:
        webhook = await house.webhook(target={"url": receiver.url})
        call = await house.recorded(webhook)
        await deliver(house, webhook)
        (delivery,) = (await house.story(call)).deliveries
    assert (delivery.state, receiver.asked) == ("queued", [])
    assert "the target cannot be reached" in delivery.error


async def test_its_key_and_its_headers_are_its_own(house: House, receiver: Receiver) -> None:
    webhook = await house.webhook(
        target={"url": receiver.url, "headers": {"X-Key": "v", "X-S": "{fieldOne}"}}
    )
    stored: Any = await house.gateway.store.webhooks.get(webhook.id)
    key = stored.secrets["targetKey"].value.decode()
    assert key.startswith("whsec_")
    assert await webhooks.reveal(house.gateway, OWNER, webhook.id) == {"targetKey": key}
    shown = await webhooks.show(house.gateway, OWNER, webhook.id)
    assert shown.target is not None and shown.target.headers == ["X-Key", "X-S"]
    (written,) = (await as_code.export(house.gateway, OWNER)).webhooks
    assert written["target"]["headers"]["X-S"] == "{fieldOne}"
    assert written["target"]["headers"]["X-Key"]["env"].startswith("ORDERS_TARGET_X_KEY")
    change = webhooks.change
    with pytest.raises(Refused) as refused:
        await change(house.gateway, OWNER, webhook.id, {"target": {"url": "https://else.example/"}})
    assert {one.field for one in refused.value.errors} == {"target.headers.X-Key", "target.headers.X-S"}
    await change(
        house.gateway, OWNER, webhook.id, {"authentication": {"method": "token", "token": {"generate": True}}}
    )
    assert {"targetKey", "target:x-key"} <= (
        await house.gateway.store.webhooks.get(webhook.id)
    ).secrets.keys()
    await change(house.gateway, OWNER, webhook.id, {"target": None})
    assert (await house.gateway.store.webhooks.get(webhook.id)).secrets.keys() == {"main"}


@pytest.mark.parametrize("forward", ["trigger", "original"])
async def test_a_waiting_caller_gets_the_targets_answer(
    house: House, receiver: Receiver, forward: str
) -> None:
    receiver.answer = (
        202 if forward == "original" else 201,
        {"Content-Type": "text/csv", "Set-Cookie": "a=1"},
        b"1,2",
    )
    webhook = await house.webhook(
        target={"url": receiver.url, "forward": forward}, synchronousResponse={"enabled": True}
    )
    reply = await house.call(webhook)
    assert (reply.status, reply.body, reply.headers["content-type"]) == (
        receiver.answer[0],
        b"1,2",
        "text/csv",
    )
    assert "set-cookie" not in reply.headers


@pytest.mark.parametrize("held", [15.0, 0.0])
@pytest.mark.parametrize(("forward", "refused"), [("trigger", False), ("original", True)])
@pytest.mark.parametrize("status", [404, 500, 301])
async def test_a_waiting_caller_hears_the_refusal_of_a_target_that_does_not_notice_us(
    house: House,
    receiver: Receiver,
    monkeypatch: pytest.MonkeyPatch,
    forward: str,
    refused: bool,
    status: int,
    held: float,
) -> None:
    monkeypatch.setattr("postern.engines.http.LONGEST_HOLD", held)  # also where it comes late
    receiver.answer = status, "text/csv", b"no such thing"
    webhook = await house.webhook(
        target={"url": receiver.url, "forward": forward}, synchronousResponse={"enabled": True}
    )
    reply = await house.call(webhook)
    await EndingsLoop(house.gateway).write()
    ours = 502, "application/problem+json"
    theirs = status, "text/csv"
    assert (reply.status, reply.headers["content-type"]) == (theirs if refused and status >= 400 else ours)
    assert (reply.body == b"no such thing") is (refused and status >= 400)
    (found,) = (await house.story((await house.history())[0].id)).deliveries
    assert (found.state, found.error.partition(":")[0]) == ("failed", f"the target answered {status}")


TOLD = {
    409: ("failed", "the target answered 409"),
    404: ("queued", "the target answered 404: no such thing"),
    500: ("queued", "the target answered 500: no such thing"),
}


@pytest.mark.parametrize("status", TOLD)
async def test_anything_but_2xx_is_told_truly_and_loses_nothing(
    house: House, receiver: Receiver, status: int
) -> None:
    receiver.answer = status, "text/plain", b"no such thing"
    webhook = await house.webhook(target={"url": receiver.url, "forward": "original"})
    call = await house.recorded(webhook)
    await deliver(house, webhook)
    (delivery,) = (await house.story(call)).deliveries
    state, said = TOLD[status]
    assert delivery.state == state
    assert said in delivery.error
    assert "it could not be sent" in sentences.reason((await house.history())[0])
    assert house.gateway.runtime.engine.away is None
    if state == "queued":
        assert delivery.lane == webhook.id
        receiver.answer = 204, "", b""
        house.gateway.clock = lambda after=house.gateway.clock() + 86_400: after
        await deliver(house, webhook)
        assert [one.state for one in (await house.story(call)).deliveries] == ["started"]


async def test_a_receiver_that_is_starting_has_not_taken_a_call(house: House, receiver: Receiver) -> None:
    """As n8n starts: a 200 for everything, then 404 until its flows are there. Nothing but 404 is an address of nothing."""
    webhook = await house.webhook(target={"url": receiver.url, "forward": "original"})
    call, day = await house.recorded(webhook), house.gateway.clock()
    answers = [
        (200, "text/html", b"n8n is starting up. Please wait"),
        *[(404, "text/html", b"Cannot POST")] * 7,
    ]
    answers += [(503, "text/plain", b""), *[(404, "text/html", b"<!DOCTYPE html>"), (404, "", b"{}")] * 4]
    for number, receiver.answer in enumerate(answers):
        house.gateway.clock = lambda after=day + number * 7200: after
        await deliver(house, webhook)
        (delivery,) = (await house.story(call)).deliveries
        assert (delivery.state, delivery.attempts) == ("failed" if number == 16 else "queued", number + 1)
    assert delivery.error == "given up after 8 tries in a row: the target answered 404: {}"


def endless(connection: socket.socket, over: threading.Event) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 10000000000\r\n\r\n")
    while not over.is_set():
        connection.sendall(b"x" * 65536)


def silent(_: socket.socket, over: threading.Event) -> None:
    over.wait()


@pytest.mark.parametrize(("answer", "state"), [(endless, "started"), (silent, "queued")])
async def test_an_answer_that_never_ends_and_one_that_never_comes_are_bounded(
    house: House, answer: Any, state: str
) -> None:
    with program(answer) as (url, _):
        webhook = await house.webhook(target={"url": url, "timeoutSeconds": 1})
        call = await house.recorded(webhook)
        await deliver(house, webhook)
        (delivery,) = (await house.story(call)).deliveries
        assert delivery.state == state
        if state == "queued":
            assert "the target did not answer in time" in delivery.error


async def test_a_target_works_without_an_engine_and_stays_shut_when_its_webhook_is_gone(
    house: House, receiver: Receiver
) -> None:
    house.gateway.engine = None
    webhook = await house.webhook(target={"url": receiver.url})
    await house.recorded(webhook)
    await deliver(house, webhook)
    assert len(receiver.asked) == 1
    house.gateway.engine = house.engine
    call = await house.recorded(webhook)
    await webhooks.remove(house.gateway, OWNER, webhook.id)
    await deliver(house, webhook)
    (delivery,) = (await house.story(call)).deliveries
    assert (delivery.state, delivery.error, house.engine.started) == (
        "queued",
        "its webhook is not served",
        {},
    )
    assert len(receiver.asked) == 1


async def test_a_changed_target_is_used_at_once(house: House, receiver: Receiver) -> None:
    webhook = await house.webhook()
    await house.recorded(webhook)
    await webhooks.change(house.gateway, OWNER, webhook.id, {"target": {"url": receiver.url + "/one"}})
    await house.deliver()
    await webhooks.change(house.gateway, OWNER, webhook.id, {"target": {"url": receiver.url + "/two"}})
    await house.recorded(webhook)
    await deliver(house, webhook)
    assert [one.path for one in receiver.asked] == ["/one", "/two"]
    await webhooks.change(house.gateway, OWNER, webhook.id, {"target": None})
    await house.recorded(webhook)
    await house.deliver()
    assert len(house.engine.started) == 1


async def test_with_and_without_the_gateway_before_it_a_receiver_gets_the_same(
    house: House, receiver: Receiver
) -> None:
    """Random bytes and headers, sent to the receiver itself and through the gateway."""
    chance = random.Random(42)
    webhook = await house.webhook(target={"url": receiver.url, "forward": "original"}, acceptsEmpty=True)
    printable = "".join(map(chr, range(0x21, 0x7F)))
    for _ in range(60):
        text = "".join(chance.choices('ab "\\\u00e9\u4e00\n\t{}[]:,', k=chance.randrange(40)))
        body = msgspec.json.encode({text: chance.random()}) + b" " * chance.randrange(5)
        body = chance.choice([body, b'\t{"a": 1}\r\n', b""])
        headers = {
            f"x-{name}{chance.randrange(9)}": " ".join(
                "".join(chance.choices(printable, k=chance.randrange(1, 30))) for _ in range(2)
            )
            for name in ("a", "event", "odd_name", "a.b")
        } | {"content-type": "application/json", "user-agent": "S", "accept": "*/*"}
        query = "&".join(f"q{chance.randrange(99)}=%{chance.randrange(16, 256):02x}+-._~" for _ in range(3))
        await house.recorded(webhook, body, headers=headers, query=query)
        await deliver(house, webhook)
        asked, got = receiver.asked[-1], plain(receiver.asked[-1])
        assert (asked.method, asked.path, asked.body) == ("POST", f"/?{query}", body)
        ours = {"webhook-id", "webhook-timestamp", "webhook-signature", "idempotency-key"}
        carried = {"host", "content-length", "accept-encoding"}
        assert {name: value for name, value in got.items() if name not in ours | carried} == headers
        assert got["content-length"] == str(len(body))
    assert len(receiver.asked) == 60
