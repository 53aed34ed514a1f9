"""A test call is made as its sender makes it and meets the real decision: right ones are accepted, each wrong one is
rejected for its own reason."""

import asyncio
import hmac
import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from postern import presets
from postern.core.access.accounts import Actor
from postern.core.fetched import Fetched
from postern.core.problems import PROBLEMS, FetchTrouble, Refused
from postern.core.webhooks.making import Occasion
from postern.core.webhooks.settings import NoAuthentication, SignatureAuthentication, TokenAuthentication
from postern.usecases.access import audit
from postern.usecases.history import history, samples
from postern.usecases.shapes import validated
from postern.usecases.signatures import senders, sending, signatures
from postern.usecases.signatures.sending import SendRequest
from postern.usecases.signatures.views import SentCall
from postern.usecases.webhooks.views import Webhook
from stand_in import Received, Reply, stand_in
from support.clock import HeldClock
from support.every_kind import secret_of
from support.house import OWNER, House, a_house
from support.refusals import refused
from support.reply import HttpReply

SECRET = "whsec_" + "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
KEY = Actor("a program", "write", "key_1")
PERSON = Actor("ada", "write", "usr_1", "ses_1")


class Heard(Fetched):
    """What came back, as the network would hand it on."""

    def __init__(self, reply: HttpReply) -> None:
        headers = ((name.encode(), value.encode("latin-1")) for name, value in reply.headers.items())
        super().__init__(reply.status, tuple(headers), reply.body)


def comes_in(house: House) -> list[tuple[dict[str, str], bytes]]:
    """Test calls arrive at this gateway, without a socket. Gives what was sent."""
    sent: list[tuple[dict[str, str], bytes]] = []

    async def call_own(target: str, headers: Mapping[str, str], content: bytes, timeout: float) -> Heard:
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
    secret = SECRET if provider == "custom" else secret_of(provider)
    return {"authentication": {"method": "hmac", "provider": provider, "secret": secret, **more}}


ONLY_BY_THE_SENDER = {
    "pubsub": "tokens that its sender",
    "sns": "key of its certificate",
    "paypal": "key of its certificate",
}
SENDABLE = [name for name in presets.names() if name not in ONLY_BY_THE_SENDER]


async def test_what_only_its_sender_signs_cannot_be_made_here(house: House) -> None:
    comes_in(house)
    for name, why in ONLY_BY_THE_SENDER.items():
        webhook = await house.webhook(**signed_by(name))
        with pytest.raises(Refused, match=why):
            await send(house, webhook)
        assert (await send(house, webhook, wrong="missing")).code == "signature_missing"


WRONG = {"secret": "signature_mismatch", "body": "signature_mismatch", "missing": "signature_missing"}


@pytest.mark.parametrize("name", SENDABLE)
async def test_every_sample_of_every_sender_is_accepted_and_each_way_of_being_wrong_has_its_reason(
    house: House, name: str
) -> None:
    comes_in(house)
    webhook = await house.webhook(**signed_by(name), duplicateProtection={"enabled": True})
    # The second time, too: ids are new. Braintree's samples say no time and no id.
    times = 1 if name == "braintree" else 2
    for event in [one.event for one in await sending.samples(house.gateway, OWNER, webhook.id)] * times:
        call = await send(house, webhook, event=event)
        assert (call.status, call.code) == (200, "accepted"), event
    item = (await house.history(webhook_id=webhook.id))[0]
    assert item.matched == "main"
    stale = {"stale": "timestamp_expired"} if presets.get(name).scheme.timestamp else {}
    ways = {**WRONG, **stale}
    if name in ("adyen", "mailgun", "braintree"):
        del ways["body"]
        with pytest.raises(Refused, match="does not sign the body"):
            await send(house, webhook, wrong="body")
    for wrong, code in ways.items():
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
    {},
    {"signature": "header:X-Sig-*", "encoding": "base64url"},
    {"itemSeparator": "comma", "keySeparator": "equals", "signatureKey": "v1", "timestamp": "item:t",
     "signedContent": "{timestamp}.{id}.{body}", "deliveryId": "header:X-Id"},
    {"signature": "query:sig", "signedContent": "{method}{path}{body}", "encoding": "base64"},
    {"signedContent": "{timestamp}{body}", "timestamp": "body:sent.at", "timestampFormat": "unix_ms"},
    {"signedContent": "{header:X-One}{headers:X-My-*}{query:two}{bodyfield:three.four}{body_sha256}"},
    {"signedContent": "{timestamp}:{path}:{body}", "timestamp": "query:at", "timestampFormat": "iso8601"},
]  # fmt: skip


async def test_a_scheme_of_one_s_own_is_enough(house: House) -> None:
    comes_in(house)
    for scheme in SCHEMES:
        webhook = await house.webhook(**signed_by("custom", scheme={"signature": "header:X-Sig", **scheme}))
        for _ in range(2):
            call = await send(house, webhook)
            assert call.code == "accepted", call
        assert (await send(house, webhook, wrong="missing")).code == "signature_missing", scheme
        assert (await send(house, webhook, wrong="secret")).code == "signature_mismatch", scheme


async def test_what_no_one_can_sign_is_reported(house: House) -> None:
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


async def test_a_signature_that_a_key_may_not_see_is_not_kept(house: House) -> None:
    sent = comes_in(house)
    webhook = await house.webhook(**signed_by("github"))
    for actor, hidden in ((KEY, True), (PERSON, False), (OWNER, False)):
        call = await send(house, webhook, actor)
        kept = dict((await history.show(house.gateway, OWNER, call.invocation_id or "")).headers)
        made = sent[-1][0]["X-Hub-Signature-256"]
        assert ("X-Postern-Test" in {name.title() for name in sent[-1][0]}) is hidden
        assert kept["x-hub-signature-256"] == ("***" if hidden else made)
        assert made not in repr(call)
    stale = await house.webhook(**signed_by("stripe"))
    call = await send(house, stale, KEY, wrong="stale")
    explained = await signatures.explain(house.gateway, OWNER, call.invocation_id or "")
    assert (explained.code, "digest" in explained.explanation) == ("timestamp_expired", False)


async def test_it_is_noted(house: House) -> None:
    comes_in(house)
    webhook = await house.webhook(**signed_by("github"))
    await send(house, webhook, PERSON, event="ping", wrong="secret")
    note = (await audit.listing(house.gateway, OWNER)).items[0]
    assert (note.actor, note.action, note.subject) == ("ada", "test calls sent", webhook.id)
    assert note.changes == {"event": "ping", "count": 1, "wrong": "secret"}


async def test_many_are_sent_and_a_retry_is_reported_as_what_it_is(house: House) -> None:
    comes_in(house)
    webhook = await house.webhook(**signed_by("stripe"), duplicateProtection={"enabled": True})
    many = validated(SendRequest, {"count": 5, "rate": 100})
    with pytest.raises(Refused):
        validated(SendRequest, {"count": 2, "rate": 1e-300})  # it would never come to the second
    found = await sending.send(house.gateway, OWNER, webhook.id, many)
    assert [one.code for one in found.calls] == ["accepted"] * 5
    assert len(await house.history(webhook_id=webhook.id)) == 5
    same = {"body": '{"id": "evt_1"}'}
    first = await send(house, webhook, **same)
    again = await send(house, webhook, **same)
    assert (first.code, again.code, again.invocation_id) == ("accepted", "duplicate", first.invocation_id)


async def test_a_redirect_that_a_workflow_answers_is_reported_as_it_is(tmp_path: Path) -> None:
    recorded: list[str] = []

    def answer(request: Received) -> Reply:
        headers = {"Location": "https://shop.example/thanks", "X-Invocation-Id": recorded[0]}
        return Reply(303, headers, b"thank you")

    async with stand_in(answer) as public, a_house(tmp_path, POSTERN_BASE_URL=public.url) as house:
        webhook = await house.webhook()
        recorded.append(await house.recorded(webhook))
        call = await send(house, webhook)
    assert (call.status, call.answer, call.invocation_id) == (303, "thank you", recorded[0])
    assert len(public.received) == 1


async def test_what_cannot_be_made_is_refused_in_a_sentence(house: House) -> None:
    comes_in(house)
    generated = {"method": "hmac", "provider": "shopify", "secret": {"generate": True}}
    awaiting = await house.webhook(authentication=generated)
    nobody = await house.webhook()
    generic = await house.webhook(**signed_by("generic"))
    for webhook, asked, words in (
        (awaiting, {}, ": the sender's secret has not been set"),
        (nobody, {"wrong": "missing"}, ": anybody may call"),
        (generic, {"event": "gone"}, "event: there is no such sample; there are order.placed"),
        (generic, {"body": "not JSON", "changes": {"a": 1}}, ": the body is not JSON"),
        (generic, {"changes": {"event.name": 1}, "body": "[1]"}, ": the body has no place event.name"),
        (generic, {"changes": {"a..b": 1}}, "changes: 'a..b' is not a path"),
        (generic, {"body": "{}", "bodyBase64": "e30="}, "body: give body or bodyBase64, one of them"),
        *(
            (generic, {"bodyBase64": text}, "bodyBase64: is not base64")
            for text in ("%", "e30", "e30=\n", "é")
        ),
    ):
        refusal = await refused(send(house, webhook, **asked))
        wrong = [f"{one.field}: {one.message}" for one in refusal.errors]
        assert (wrong or [f": {refusal.detail}"])[0].startswith(words)
    with pytest.raises(Refused):
        await sending.send(house.gateway, OWNER, "wh_nobody", SendRequest())


# --- what comes back -------------------------------------------------------------------------------------------------


class Public:
    """What stands at the public URL: it answers as it is told, and notes what it was asked."""

    def __init__(self, house: House, *answers: HttpReply | FetchTrouble) -> None:
        self.house, self.answers = house, list(answers)
        self.targets: list[str] = []
        self.timeouts: list[float] = []
        house.gateway.outbound.call_own = self  # type: ignore[assignment]

    async def __call__(
        self, target: str, headers: Mapping[str, str], content: bytes, timeout: float
    ) -> Heard:
        self.targets.append(target)
        self.timeouts.append(timeout)
        if self.answers:
            answer = self.answers.pop(0)
            if isinstance(answer, FetchTrouble):
                raise answer
            return Heard(answer)
        path, _, query = target.partition("?")
        given = {name.lower(): value for name, value in headers.items()}
        return Heard(await self.house.call(Url(path), content, headers=given, query=query))


async def test_an_answer_is_believed_only_where_the_history_knows_the_call(house: House) -> None:
    webhook, other = await house.webhook(), await house.webhook(name="Another")
    foreign = await house.recorded(other)
    for headers, body in (
        ({}, b""),
        ({}, b"[" * 100_000),
        ({}, b'["code"]'),
        ({}, b'{"code": "made_up"}'),
        ({}, b'{"code": ["rate_limited"]}'),
        ({"x-invocation-id": foreign}, b'{"status": "accepted"}'),
        ({"x-invocation-id": foreign}, b'{"code": "webhook_not_found"}'),
        ({"x-invocation-id": "inv_" + "0" * 32}, b""),
    ):
        Public(house, HttpReply(200, headers, body))
        refusal = await refused(send(house, webhook))
        assert refusal.code == "conflict" and "leads somewhere else" in refusal.detail
        assert refusal.detail.startswith(f"{webhook.url} answers 200, and no such call has come in here")


async def test_a_call_that_was_only_counted_is_reported_by_its_reason(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("postern.core.limits.MOST_REJECTED_AT_ONCE", 0)
    comes_in(house)
    webhook = await house.webhook(authentication={"method": "token", "token": "a token of the tests"})
    request = validated(SendRequest, {"wrong": "secret", "count": 21})
    found = await sending.send(house.gateway, OWNER, webhook.id, request)
    assert [one.code for one in found.calls] == ["credential_mismatch"] * 21
    recorded, counted = found.calls[19:]
    assert recorded.invocation_id is not None
    assert (counted.status, counted.invocation_id) == (401, None)
    assert counted.detail == PROBLEMS["credential_mismatch"].help
    assert json.loads(counted.answer)["code"] == "credential_mismatch"


async def test_what_came_in_before_is_a_duplicate_however_little_the_clocks_differ(house: House) -> None:
    """The clock of the process that takes calls may be another machine's."""
    public, now, behind = Public(house), house.gateway.clock(), 0.0

    async def on_another_machine(*given: Any, **more: Any) -> Heard:
        HeldClock(house.gateway, now - behind)
        return await public(*given, **more)

    house.gateway.outbound.call_own = on_another_machine
    webhook, known = await house.webhook(), "the same event has come in before, as this invocation"
    for seconds, code in ((0.0, "accepted"), (1.5, "accepted"), (2.5, "duplicate")):
        behind = seconds
        HeldClock(house.gateway, now)
        call = await send(house, webhook)
        assert (call.code, call.detail == known) == (code, code == "duplicate")


# --- how many, and how fast ------------------------------------------------------------------------------------------


async def test_the_others_are_sent_only_where_the_first_has_come_in(house: House) -> None:
    webhook = await house.webhook()
    for asked in ({"count": 3}, {"count": 3, "rate": 100}):
        public = Public(house, FetchTrouble("nobody answered"))
        with pytest.raises(Refused, match=r"^temporarily_unavailable: .*from here: nobody answered"):
            await sending.send(house.gateway, OWNER, webhook.id, validated(SendRequest, asked))
        assert len(public.targets) == 1
    Public(house, *(HttpReply(200, {}, b"<html>") for _ in range(2)))
    with pytest.raises(Refused, match="leads somewhere else"):
        await sending.send(house.gateway, OWNER, webhook.id, validated(SendRequest, {"count": 2}))


async def test_one_that_got_no_answer_does_not_keep_the_others_from_being_reported(house: House) -> None:
    webhook = await house.webhook()
    public = Public(house)
    first = (await send(house, webhook)).invocation_id
    known = HttpReply(200, {"x-invocation-id": first or ""}, b"{}")
    for rate in (None, 100):
        public.answers = [known, FetchTrouble("nobody answered"), known]
        request = validated(SendRequest, {"count": 3, "rate": rate})
        calls = (await sending.send(house.gateway, OWNER, webhook.id, request)).calls
        (lost,) = [one for one in calls if one.status is None]
        assert len(calls) == 3 and calls[0].invocation_id == calls[2].invocation_id == first
        assert (lost.code, lost.invocation_id, lost.answer) == ("temporarily_unavailable", None, "")
        assert lost.ms == 0.0 and "nobody answered" in lost.detail


async def test_a_rate_says_when_each_begins_and_without_one_each_waits_for_the_one_before(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    webhook = await house.webhook()
    public, slept = Public(house), []
    going = most = 0

    async def counted(*given: Any, **more: Any) -> Heard:
        nonlocal going, most
        going += 1
        most = max(most, going)
        await asyncio.sleep(0)
        heard = await public(*given, **more)
        going -= 1
        return heard

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    house.gateway.outbound.call_own = counted
    replaced = SimpleNamespace(sleep=sleep, gather=asyncio.gather, Semaphore=asyncio.Semaphore)
    monkeypatch.setattr(sending, "asyncio", replaced)

    async def sent(**asked: Any) -> tuple[int, int]:
        nonlocal most
        most = 0
        found = await sending.send(house.gateway, OWNER, webhook.id, validated(SendRequest, asked))
        assert {one.code for one in found.calls} == {"accepted"}
        return len(found.calls), most

    assert await sent(count=3) == (3, 1)
    assert slept == []
    assert await sent(count=3, rate=4) == (3, 2)
    assert slept == [0.25, 0.5], "the first is sent at once"
    assert await sent(count=1, rate=4) == (1, 1)
    assert await sent(count=30, rate=50) == (30, 20), "no more than twenty at once"


# --- before anything is sent -----------------------------------------------------------------------------------------


async def test_what_cannot_be_sent_is_not_noted(house: House, tmp_path: Path) -> None:
    webhook = await house.webhook(**signed_by("github"))
    before = (await audit.listing(house.gateway, OWNER)).items
    refusal = await refused(send(house, webhook, wrong="stale"))
    assert (refusal.code, (await audit.listing(house.gateway, OWNER)).items) == ("conflict", before)
    house.gateway.outbound.call_own = None
    with pytest.raises(Refused, match=r"^conflict: .*sends nothing"):
        await send(house, webhook)
    with closing(sqlite3.connect(tmp_path / "data" / "postern.db")) as database, database:
        database.execute("UPDATE secrets SET envelope = 'damaged'")
    refusal = await refused(send(house, webhook))
    assert refusal.code == "temporarily_unavailable" and refusal.detail


LONG = '{"n": 12345678901234567890}'


async def test_the_samples_of_a_webhook_are_its_senders_and_what_was_recorded(house: House) -> None:
    async def known(**settings: Any) -> list[tuple[str, str]]:
        webhook = await house.webhook(**settings)
        await samples.arm(house.gateway, OWNER, webhook.id)
        comes_in(house)
        await send(house, webhook, body="[7]" if "hubspot" in str(settings) else LONG)
        found = await sending.samples(house.gateway, OWNER, webhook.id)
        recorded = next(one for one in found if one.event == "recorded")
        assert recorded.title
        assert dict(recorded.headers) == dict(found[0].headers)
        how = settings["authentication"]
        usual = [one.event for one in senders.samples_of(how.get("provider", ""))]
        assert [one.event for one in found[: len(usual)]] == usual
        return [(one.event, one.body) for one in found[len(usual) :]]

    token = {"method": "token", "token": "a token of the tests"}
    assert await known(authentication=token) == [("recorded", LONG), ("minimal", "{}")]
    assert await known(**signed_by("github")) == [("recorded", LONG)]
    # What its sender sends as an array is kept inside an object; it is sent as it came.
    assert await known(**signed_by("hubspot")) == [("recorded", "[7]")]
    custom = signed_by("custom", scheme={"signature": "header:X-Sig"})
    assert await known(**custom) == [("recorded", LONG)]
    (minimal,) = await sending.samples(house.gateway, OWNER, (await house.webhook(**custom)).id)
    assert (minimal.event, minimal.body) == ("minimal", "{}")
    assert minimal.headers == (("Content-Type", "application/json"),)
    assert senders.samples_of("nobody") == []
    events = [one.event for one in presets.get("stripe").samples]
    assert [one.event for one in senders.samples_of("stripe")] == events


# --- with a secret that comes along ----------------------------------------------------------------------------------


def test_a_call_is_made_without_a_gateway() -> None:
    occasion = Occasion(1_800_000_000.0, b"\1" * 32, "https://hooks.example.com", "/webhook/code")
    draft = sending.draft_of(senders.samples_of("github"), SendRequest(body="{}"))
    scheme = presets.get("github").scheme
    how: Any = SignatureAuthentication(provider="github")
    made = sending.made(how, scheme, b"s", draft, occasion, SendRequest())
    signature = hmac.new(b"s", b"{}", sha256).hexdigest()
    assert dict(made.headers)["X-Hub-Signature-256"] == f"sha256={signature}"
    token = TokenAuthentication(header_name="X-Mine")
    assert dict(sending.made(token, None, b"t", draft, occasion, SendRequest()).headers)["X-Mine"] == "t"
    nothing = sending.made(NoAuthentication(), None, b"t", draft, occasion, SendRequest())
    assert "t" not in dict(nothing.headers).values()
    with pytest.raises(Refused, match=r"^conflict: .*anybody may call"):
        sending.made(NoAuthentication(), None, b"t", draft, occasion, SendRequest(wrong="missing"))
    with pytest.raises(Refused) as caught:
        sending.made(how, presets.get("standardwebhooks").scheme, b"%", draft, occasion, SendRequest())
    assert [error.field for error in caught.value.errors] == ["secret"]
