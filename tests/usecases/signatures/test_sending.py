"""A test call is made as its sender makes it and meets the real decision: right ones are accepted, each wrong one is
rejected for its own reason."""

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import standardwebhooks

from postern import presets
from postern.core.access.accounts import Actor
from postern.core.problems import Refused
from postern.usecases.access import audit
from postern.usecases.history import history, samples
from postern.usecases.ports import FetchTrouble
from postern.usecases.signatures import sending, signatures
from postern.usecases.signatures.sending import SendRequest
from postern.usecases.signatures.views import SentCall
from postern.usecases.webhooks.configuration import validated
from postern.usecases.webhooks.views import Webhook
from stand_in import Received, Reply, stand_in
from support.house import OWNER, House, HttpReply, a_house

pytestmark = pytest.mark.anyio

SECRET = "whsec_" + "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
KEY = Actor("a program", "write", "key_1")
PERSON = Actor("ada", "write", "usr_1", "ses_1")


class Heard:
    """What came back, as the network would hand it on."""

    def __init__(self, reply: HttpReply) -> None:
        self.status, self.body = reply.status, reply.body
        self.headers = ()
        self._headers = reply.headers

    def header(self, name: str) -> str | None:
        return self._headers.get(name)

    def retry_after(self, now: float) -> float | None:
        return None


def comes_in(house: House) -> list[tuple[dict[str, str], bytes]]:
    """Test calls arrive at this gateway, without a socket. Gives what was sent."""
    sent: list[tuple[dict[str, str], bytes]] = []

    async def call_own(target: str, *, headers: Mapping[str, str], content: bytes, timeout: float) -> Heard:
        path, _, query = target.partition("?")
        sent.append((dict(headers), content))
        given = {name.lower(): value for name, value in headers.items()}
        return Heard(await house.call(Url(path), content, headers=given, query=query))

    house.gateway.outbound.call_own = call_own
    return sent


class Url:
    def __init__(self, url: str) -> None:
        self.url = url


async def send(house: House, webhook: Webhook, actor: Actor = OWNER, **asked: Any) -> SentCall:
    found = await sending.send(house.gateway, actor, webhook.id, validated(SendRequest, asked))
    (call,) = found.calls
    return call


def signed_by(provider: str, **more: Any) -> dict[str, Any]:
    return {"authentication": {"method": "hmac", "provider": provider, "secret": SECRET, **more}}


@pytest.mark.parametrize("name", presets.names())
async def test_every_sample_of_every_sender_is_accepted(house: House, name: str) -> None:
    comes_in(house)
    webhook = await house.webhook(
        **signed_by(name), duplicateProtection={"enabled": True}, fieldMapping={"fieldOne": "items"}
    )
    for event in [one.event for one in await sending.samples(house.gateway, OWNER, webhook.id)] * 2:
        call = await send(house, webhook, event=event)
        assert (call.status, call.code) == (200, "accepted"), (
            event,
            call,
        )  # the second time, too: ids are new
    item = (await house.history(webhook_id=webhook.id))[0]
    assert item.matched == "main"


@pytest.mark.parametrize("name", ["standardwebhooks", "bigcommerce"])
async def test_the_vendor_s_own_library_takes_every_sample(house: House, name: str) -> None:
    sent = comes_in(house)
    webhook = await house.webhook(**signed_by(name))
    key = SECRET if name == "standardwebhooks" else base64.b64encode(SECRET.encode()).decode()
    for sample in presets.get(name).samples:
        await send(house, webhook, event=sample.event)
        headers, body = sent[-1]
        assert standardwebhooks.Webhook(key).verify(body, headers) == json.loads(body)


WRONG = {"secret": "signature_mismatch", "body": "signature_mismatch", "missing": "signature_missing"}


@pytest.mark.parametrize("name", presets.names())
async def test_each_way_of_being_wrong_has_its_reason(house: House, name: str) -> None:
    comes_in(house)
    webhook = await house.webhook(**signed_by(name))
    stale = {"stale": "timestamp_expired"} if presets.get(name).scheme.timestamp else {}
    for wrong, code in {**WRONG, **stale}.items():
        call = await send(house, webhook, wrong=wrong)
        assert (call.status, call.code) == (401, code), wrong
    if not stale:
        with pytest.raises(Refused, match="signs no time"):
            await send(house, webhook, wrong="stale")


@pytest.mark.parametrize(
    "how",
    [
        {"placement": "header", "headerName": "X-Mine"},
        {"placement": "bearer"},
        {"placement": "basic", "username": "ada"},
        {"placement": "url", "parameterName": "key"},
    ],
)
async def test_a_token_is_sent_where_its_webhook_looks_for_it(house: House, how: dict[str, str]) -> None:
    comes_in(house)
    webhook = await house.webhook(authentication={"method": "token", "token": "a token & more of it", **how})
    assert (await send(house, webhook)).code == "accepted"
    assert (await send(house, webhook, wrong="secret")).code == "credential_mismatch"
    assert (await send(house, webhook, wrong="missing")).code == "credential_missing"
    for wrong in ("body", "stale"):
        with pytest.raises(Refused, match="says nothing about the body"):
            await send(house, webhook, wrong=wrong)


SCHEMES = [
    {"signature": "header:X-Sig"},
    {"signature": "header:X-Sig-*", "encoding": "base64url"},
    {
        "signature": "header:X-Sig",
        "itemSeparator": "comma",
        "keySeparator": "equals",
        "signatureKey": "v1",
        "signedContent": "{timestamp}.{id}.{body}",
        "timestamp": "item:t",
        "deliveryId": "header:X-Id",
    },
    {"signature": "query:sig", "signedContent": "{method}{path}{body}", "encoding": "base64"},
    {
        "signature": "header:X-Sig",
        "signedContent": "{timestamp}{body}",
        "timestamp": "body:sent.at",
        "timestampFormat": "unix_ms",
    },
    {
        "signature": "header:X-Sig",
        "signedContent": "{header:X-One}{headers:X-My-*}{query:two}{bodyfield:three.four}{body_sha256}",
    },
    {"signature": "header:X-Sig", "timestamp": "query:at", "timestampFormat": "iso8601",
     "signedContent": "{timestamp}:{path}:{body}"},
]  # fmt: skip


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_a_scheme_of_one_s_own_is_enough(house: House, scheme: dict[str, str]) -> None:
    comes_in(house)
    webhook = await house.webhook(**signed_by("custom", scheme=scheme))
    for _ in range(2):
        call = await send(house, webhook)
        assert call.code == "accepted", call
    if "{url}" not in scheme.get(
        "signedContent", ""
    ):  # its URL is left as it is when the signature is missing
        assert (await send(house, webhook, wrong="missing")).code == "signature_missing"
    assert (await send(house, webhook, wrong="secret")).code == "signature_mismatch"


async def test_what_no_one_can_sign_is_said(house: House) -> None:
    for scheme, why in (
        ({"signature": "body:sig"}, "inside the body"),
        ({"signature": "query:sig", "signedContent": "{url}{body}"}, "a part of what it signs"),
    ):
        webhook = await house.webhook(**signed_by("custom", scheme=scheme))
        with pytest.raises(Refused, match=why):
            await send(house, webhook)


async def test_a_body_of_one_s_own_and_values_set_in_it(house: House) -> None:
    sent = comes_in(house)
    webhook = await house.webhook(**signed_by("linear"), fieldMapping={"fieldOne": "data.id"})
    call = await send(house, webhook, body='{"a": 1, "at": "{iso}"}', changes={"data.id": 7, "list": []})
    assert call.code == "accepted"
    document = json.loads(sent[-1][1])
    assert (document["data"], document["a"], document["at"][:2]) == ({"id": 7}, 1, "20")
    assert "webhookTimestamp" in document  # or Linear's scheme would call it unsigned
    array = await house.webhook(**signed_by("hubspot"))
    changed = await send(house, array, event="contact.creation", changes={"[0].objectId": 9})
    assert (changed.code, json.loads(sent[-1][1])[0]["objectId"]) == ("accepted", 9)
    bytes_as_they_are = await send(house, webhook, wrong="secret", bodyBase64="eyAgfQ==")
    assert bytes_as_they_are.code == "signature_mismatch"


async def test_what_was_recorded_can_be_sent_again(house: House) -> None:
    sent = comes_in(house)
    webhook = await house.webhook()
    assert [one.event for one in await sending.samples(house.gateway, OWNER, webhook.id)] == ["minimal"]
    await samples.arm(house.gateway, OWNER, webhook.id)
    await house.call(webhook, b'{"number": 12345678901234567890}')
    assert (await send(house, webhook)).code == "accepted"
    assert sent[-1][1] == b'{"number": 12345678901234567890}'


async def test_a_signature_that_a_key_may_not_see_is_not_kept(house: House) -> None:
    sent = comes_in(house)
    webhook = await house.webhook(**signed_by("github"))
    for actor, hidden in ((KEY, True), (PERSON, False)):
        call = await send(house, webhook, actor)
        kept = dict((await history.show(house.gateway, OWNER, call.invocation_id or "")).headers)
        made = sent[-1][0]["X-Hub-Signature-256"]
        assert kept["x-hub-signature-256"] == ("***" if hidden else made)
        assert made not in repr(call)
    by_model = await sending.send(house.gateway, PERSON, webhook.id, SendRequest(), hide_signature=True)
    item = await history.show(house.gateway, OWNER, by_model.calls[0].invocation_id or "")
    assert dict(item.headers)["x-hub-signature-256"] == "***"
    stale = await house.webhook(**signed_by("stripe"))
    call = await send(house, stale, KEY, wrong="stale")
    explained = await signatures.explain(house.gateway, OWNER, call.invocation_id or "")
    assert (explained.code, "digest" in explained.explanation) == ("timestamp_expired", False)


async def test_it_is_noted_and_needs_the_level_write(house: House) -> None:
    comes_in(house)
    webhook = await house.webhook(**signed_by("github"))
    with pytest.raises(Refused, match="access level write"):
        await send(house, webhook, Actor("reader", "read", "key_2"))
    await send(house, webhook, PERSON, event="ping", wrong="secret")
    note = (await audit.listing(house.gateway, OWNER)).items[0]
    assert (note.actor, note.action, note.subject) == ("ada", "test calls sent", webhook.id)
    assert note.changes == {"event": "ping", "count": 1, "wrong": "secret"}


async def test_many_are_sent_and_a_retry_is_told_as_what_it_is(house: House) -> None:
    comes_in(house)
    webhook = await house.webhook(**signed_by("stripe"), duplicateProtection={"enabled": True})
    many = validated(SendRequest, {"count": 5, "rate": 100})
    found = await sending.send(house.gateway, OWNER, webhook.id, many)
    assert [one.code for one in found.calls] == ["accepted"] * 5
    assert len(await house.history(webhook_id=webhook.id)) == 5
    same = {"body": '{"id": "evt_1"}'}
    first = await send(house, webhook, **same)
    again = await send(house, webhook, **same)
    assert (first.code, again.code, again.invocation_id) == ("accepted", "duplicate", first.invocation_id)


async def test_a_redirect_that_a_workflow_answers_is_told_as_it_is(tmp_path: Path) -> None:
    recorded: list[str] = []

    def answer(request: Received) -> Reply:
        headers = {"Location": "https://shop.example/thanks", "X-Invocation-Id": recorded[0]}
        return Reply(303, headers, b"thank you")

    async with stand_in(answer) as public, a_house(tmp_path, POSTERN_BASE_URL=public.url) as house:
        webhook = await house.webhook()
        recorded.append((await house.call(webhook)).json["invocationId"])
        call = await send(house, webhook)
    assert (call.status, call.answer, call.invocation_id) == (303, "thank you", recorded[0])
    assert len(public.received) == 1


async def test_a_public_url_that_leads_elsewhere_is_said(house: House) -> None:
    webhook = await house.webhook()
    for status, headers, body in (
        (200, {}, b"<html>"),
        (404, {}, b'{"code":"webhook_not_found"}'),
        (200, {"x-invocation-id": "inv_" + "0" * 32}, b""),
    ):

        async def elsewhere(
            target: str, *, reply: HttpReply = HttpReply(status, headers, body), **_: Any
        ) -> Heard:
            return Heard(reply)

        house.gateway.outbound.call_own = elsewhere  # type: ignore[assignment]
        with pytest.raises(Refused, match="leads somewhere else"):
            await send(house, webhook)

    async def away(target: str, **_: Any) -> Heard:
        raise FetchTrouble("nobody answered")

    house.gateway.outbound.call_own = away  # type: ignore[assignment]
    with pytest.raises(Refused, match="cannot be called from here: nobody answered") as refused:
        await send(house, webhook)
    assert refused.value.code == "temporarily_unavailable"


async def test_what_cannot_be_made_is_refused_in_a_sentence(house: House) -> None:
    comes_in(house)
    awaiting = await house.webhook(**signed_by("shopify") | {"authentication": {
        "method": "hmac", "provider": "shopify", "secret": {"generate": True}}})  # fmt: skip
    nobody = await house.webhook()
    generic = await house.webhook(**signed_by("generic"))
    for webhook, asked, words in (
        (awaiting, {}, "secret has not been set"),
        (nobody, {"wrong": "missing"}, "anybody may call"),
        (generic, {"event": "gone"}, "there are order.placed"),
        (generic, {"body": "not JSON", "changes": {"a": 1}}, "is not JSON"),
        (generic, {"changes": {"event.name": 1}, "body": "[1]"}, "no place event.name"),
        (generic, {"changes": {"a..b": 1}}, "is not a path"),
        (generic, {"body": "{}", "bodyBase64": "e30="}, "one of them"),
        (generic, {"bodyBase64": "%"}, "is not base64"),
    ):
        with pytest.raises(Refused) as refused:
            await send(house, webhook, **asked)
        said = str(refused.value) + str(refused.value.errors)
        assert words in said, said
    with pytest.raises(Refused):
        await sending.send(house.gateway, OWNER, "wh_nobody", SendRequest())
