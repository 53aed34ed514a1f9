"""The signature tester: what is asked of it, and what it tells whom. And which sender a call or a description is of."""

import base64
import hashlib
import hmac
from typing import Any

import pytest

from postern import presets
from postern.core.access.accounts import Actor
from postern.core.problems import PROBLEMS, Refused
from postern.usecases import stored_webhook
from postern.usecases.shapes import validated
from postern.usecases.signatures import remedies, senders, signatures
from postern.usecases.signatures.signatures import SignatureTest
from postern.usecases.signatures.views import SignatureResult
from postern.usecases.webhooks import webhooks
from postern.usecases.webhooks.requests import NO_SECRET
from postern.usecases.webhooks.views import Webhook
from support.clock import HeldClock
from support.house import OWNER, House
from support.refusals import fields_refused

NOW = 1_800_000_000


def signature(secret: str, body: bytes = b"{}") -> str:
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def github(secret: str = "right", body: bytes = b"{}") -> dict[str, str]:
    return {"X-Hub-Signature-256": signature(secret, body)}


def how(provider: str = "github", secret: Any = "right", **more: Any) -> dict[str, Any]:
    return {"method": "hmac", "provider": provider, "secret": secret, **more}


def call(headers: dict[str, str] | None = None, **more: Any) -> dict[str, Any]:
    given = github() if headers is None else headers
    return {"url": "https://hooks.example.com/w", "headers": list(given.items()), "body": "{}", **more}


async def result_of(house: House, actor: Actor = OWNER, **asked: Any) -> SignatureResult:
    return await signatures.test(house.gateway, actor, validated(SignatureTest, asked))


async def wrong(house: House, **asked: Any) -> dict[str, str]:
    return await fields_refused(result_of(house, **asked))


async def rejected(house: House, webhook: Webhook, **given: Any) -> str:
    reply = await house.call(webhook, **given)
    assert reply.status >= 400
    return str(reply.json["invocationId"])


# --- what is asked ---------------------------------------------------------------------------------------------------


async def test_how_and_what_to_check_is_each_reported_once(house: House) -> None:
    webhook = await house.webhook(authentication=how())
    one_of = "give authentication or webhookId, one of them"
    assert await wrong(house, call=call()) == {"authentication": one_of}
    both = {"authentication": how(), "webhookId": webhook.id}
    assert await wrong(house, **both, call=call()) == {"authentication": one_of}
    one_of = "give call or invocationId, one of them"
    assert await wrong(house, webhookId=webhook.id) == {"call": one_of}
    recorded = await house.recorded(webhook, headers=github())
    assert await wrong(house, webhookId=webhook.id, call=call(), invocationId=recorded) == {"call": one_of}
    for asked in ({"call": call()}, {"invocationId": recorded}):
        assert (await result_of(house, webhookId=webhook.id, **asked)).verified
        assert (await result_of(house, authentication=how(), **asked)).verified


async def test_a_test_needs_the_secrets_themselves(house: House) -> None:
    generate = {"generate": True}
    for given, field, why in (
        ({"secret": generate}, "secret", "is required for a test"),
        ({"secret": None}, "secret", NO_SECRET),
        ({"secondSecret": generate}, "secondSecret", "a test needs the secret itself"),
    ):
        errors = await wrong(house, authentication=how(**given), call=call())
        assert errors == {f"authentication.{field}": why}
    open_to_all = await house.webhook()
    with pytest.raises(Refused, match=r"^conflict: .*is not a signature"):
        await result_of(house, webhookId=open_to_all.id, call=call())


async def test_a_body_is_text_or_base64_and_need_not_be_there(house: House) -> None:
    binary = b"\xff\x00"
    asked = call(github(body=binary), body=None, bodyBase64=base64.b64encode(binary).decode())
    found = await result_of(house, authentication=how(), call=asked)
    assert found.verified
    assert (found.signed_content, found.signed_content_base64) == ("\ufffd\x00", "/wA=")
    many = dict.fromkeys((f"X-{number}" for number in range(199)), "\u00ff")
    for asked in (
        call(github(body=b""), body=None),
        call(github(body="é".encode()), body="é"),
        call({**many, **github()}, method="M" * 20, url="https://a/" + "u" * 7990),
    ):
        assert (await result_of(house, authentication=how(), call=asked)).verified
    for given, field in (
        (call(bodyBase64=""), {"call.body": "give body or bodyBase64, one of them"}),
        *((call(body=None, bodyBase64=text), {"call.bodyBase64": "is not base64"}) for text in ("e30", "é")),
    ):
        assert await wrong(house, authentication=how(), call=given) == field
    latin = "headers and url hold Latin-1, a body as text holds Unicode"
    for given in (call({"X-A": "€"}), call({"€": "a"}), call(url="https://a/€"), call(url="https://a/?€")):
        assert await wrong(house, authentication=how(), call=given) == {"call": latin}
    for given, name in (
        (call(method="M" * 21), "method"),
        (call(url="https://a/" + "u" * 7991), "url"),
        (call(url="https://[a/"), "url"),
        (call({**many, **github(), "X-One-More": "v"}), "headers"),
    ):
        assert (await wrong(house, authentication=how(), call=given)).keys() == {f"call.{name}"}


async def test_each_part_of_a_call_is_what_was_signed(house: House) -> None:
    """A scheme that signs all that a call has; the header's name is written in another way than the scheme's."""
    content = "{method} {url} {path} {header:X-One} {query:two} {body}"
    scheme = {"signature": "header:X-Sig", "signedContent": content}
    url = "https://hooks.example.com/w?two=2"
    text = f"PUT {url} /w 1 2 {{}}"
    headers = {"X-SIG": signature("right", text.encode()).removeprefix("sha256="), "X-oNE": "1"}
    asked, own = call(headers, method="PUT", url=url), how("custom", scheme=scheme)
    found = await result_of(house, authentication=own, call=asked)
    assert (found.signed_content, found.verified) == (text, True)
    elsewhere = {**own, "publicUrl": url.replace("hooks", "public")}
    moved = await result_of(house, authentication=elsewhere, call=asked)
    assert (moved.code, moved.signed_content) == ("signature_mismatch", text.replace("hooks", "public"))


async def test_the_time_of_a_test_is_the_one_that_is_given_or_now(house: House) -> None:
    HeldClock(house.gateway, float(NOW))
    made = hmac.new(b"right", f"{NOW - 310}.{{}}".encode(), hashlib.sha256).hexdigest()
    old = call({"Stripe-Signature": f"t={NOW - 310},v1={made}"})
    asked = {"authentication": how("stripe"), "call": old}
    assert (await result_of(house, **asked)).code == "timestamp_expired"
    assert (await result_of(house, **asked, at=NOW - 100)).verified
    patient = {**asked, "authentication": how("stripe", toleranceSeconds=310)}
    assert (await result_of(house, **patient)).verified
    webhook = await house.webhook(authentication=how("stripe", toleranceSeconds=310))
    assert (await result_of(house, webhookId=webhook.id, call=old)).verified


@pytest.mark.parametrize("at", [float("inf"), float("-inf"), float("nan")])
async def test_a_moment_that_is_no_number_is_refused(house: House, at: float) -> None:
    asked = {"authentication": how(), "call": call()}
    assert await wrong(house, **asked, at=at) == {"at": "write a number"}


async def test_which_secret_matched_is_reported_and_what_each_would_have_made(house: House) -> None:
    webhook = await house.webhook(authentication=how(secondSecret="second"))
    for asked in ({"webhookId": webhook.id}, {"authentication": how(secondSecret="second")}):
        main = await result_of(house, **asked, call=call())
        second = await result_of(house, **asked, call=call(github("second")))
        neither = await result_of(house, **asked, call=call(github("wrong")))
        assert (main.matched, second.matched, neither.matched) == ("main", "second", None)
        assert (main.code, neither.code) == (None, "signature_mismatch")
        expected = [("main", signature("right")), ("second", signature("second"))]
        assert [(one.secret, one.signature) for one in neither.expected] == expected
        assert neither.received == [signature("wrong")]
        assert "github" in neither.resembles
        assert all(step.step and step.detail for step in neither.steps)
        assert any(step.ok for step in main.steps) and not all(step.ok for step in neither.steps)


async def test_a_key_sees_what_its_own_secret_makes_and_not_what_a_stored_one_does(house: House) -> None:
    webhook = await house.webhook(authentication=how())
    key = Actor("a program", "read", "key_1")
    stored = await result_of(house, key, webhookId=webhook.id, call=call(github("wrong")))
    assert (stored.expected, stored.code) == ([], "signature_mismatch")
    given = await result_of(house, key, authentication=how(), call=call(github("wrong")))
    assert [one.signature for one in given.expected] == [signature("right")]


async def test_a_secret_that_is_awaited_is_the_reason_only_where_the_signature_does_not_match(
    house: House,
) -> None:
    webhook = await house.webhook(authentication=how(secret={"generate": True}))
    mismatch = await result_of(house, webhookId=webhook.id, call=call())
    assert mismatch.explanation == signatures.SECRET_AWAITED
    missing = await result_of(house, webhookId=webhook.id, call=call({}))
    assert missing.code == "signature_missing" and missing.explanation != signatures.SECRET_AWAITED
    await webhooks.change(house.gateway, OWNER, webhook.id, {"authentication": {"secondSecret": "set"}})
    mismatch = await result_of(house, webhookId=webhook.id, call=call())
    assert mismatch.explanation != signatures.SECRET_AWAITED


# --- why a recorded call was rejected --------------------------------------------------------------------------------


async def test_what_is_explained_is_the_signature_where_that_was_the_trouble(house: House) -> None:
    webhook = await house.webhook(authentication=how())
    invocation = await rejected(house, webhook, headers=github("wrong"))
    shown: Any = await signatures.explain(house.gateway, OWNER, invocation)
    assert (shown.invocation_id, shown.code, shown.verified) == (invocation, "signature_mismatch", False)
    assert shown.steps and shown.signed_content == "{}"
    await webhooks.change(house.gateway, OWNER, webhook.id, {"authentication": {"secret": "wrong"}})
    shown = await signatures.explain(house.gateway, OWNER, invocation)
    assert (shown.code, shown.verified) == ("signature_mismatch", True), "what it was, by what is set today"


async def test_anything_else_is_explained_by_its_reason(house: House) -> None:
    signed = await house.webhook(authentication=how())
    accepted = await house.recorded(signed, headers=github())
    shown = await signatures.explain(house.gateway, OWNER, accepted)
    assert (shown.code, shown.explanation) == ("accepted", "The call was accepted.")
    assert shown.would_verify_if == []
    assert "github" in shown.resembles and not hasattr(shown, "verified")

    array = await rejected(house, signed, body=b"[]", headers=github(body=b"[]"))
    shown = await signatures.explain(house.gateway, OWNER, array)
    code = "payload_not_an_object"
    why = f"{PROBLEMS[code].help} The body is an array, and arrays are refused."
    assert (shown.code, shown.explanation) == (code, why)
    token = await house.webhook(authentication={"method": "token", "token": "a token of the tests"})
    shown = await signatures.explain(house.gateway, OWNER, await rejected(house, token))
    assert shown.explanation.startswith(PROBLEMS["credential_missing"].help)

    mismatch = await rejected(house, signed, headers=github("wrong"))
    await webhooks.remove(house.gateway, OWNER, signed.id)
    shown = await signatures.explain(house.gateway, OWNER, mismatch)
    assert shown.explanation.startswith(PROBLEMS["signature_mismatch"].help)
    assert not hasattr(shown, "steps"), "there is nothing it could be checked by"


async def test_a_fix_is_the_one_that_was_offered_under_its_number(house: House) -> None:
    webhook = await house.webhook(authentication=how("linear"))
    invocation = await rejected(house, webhook, headers=github())
    offered = (await signatures.explain(house.gateway, OWNER, invocation)).would_verify_if
    assert offered and offered[0].patch is not None and offered[0].change and offered[0].explanation
    with pytest.raises(Refused, match=r"^conflict: .*no longer on offer"):
        await remedies.apply(house.gateway, OWNER, invocation, len(offered))
    after = await remedies.apply(house.gateway, OWNER, invocation, 0)
    assert after.authentication.provider == offered[0].patch["provider"]  # type: ignore[union-attr]
    stored = await stored_webhook.stored(house.gateway, webhook.id)
    assert stored.secrets["main"].value == b"right", "with which the call was seen to verify"
    with pytest.raises(Refused, match="no longer on offer"):
        await remedies.apply(house.gateway, OWNER, invocation, 0)


async def test_what_a_change_would_reject_is_counted_among_the_last_fifty_that_are_not_huge(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    webhook = await house.webhook(authentication=how(verifyToken="three", secondSecret="second"))
    other = await house.webhook(authentication=how())
    large = b'{"a":"' + b"a" * remedies.LARGEST_TRIED + b'"}'
    await webhooks.change(house.gateway, OWNER, webhook.id, {"payloadLimitBytes": len(large)})
    for body, secret in ((b"{}", "second"), (b"{}", "right"), (large, "right"), (b"{} ", "right")):
        assert (await house.call(webhook, body, headers=github(secret, body))).status == 200
    await house.call(other, headers=github())
    await rejected(house, webhook, headers=github("wrong"))

    async def shown(*patches: dict[str, Any] | None) -> list[tuple[int, int] | None]:
        found = await remedies.effects(house.gateway, OWNER, webhook.id, list(patches))
        return [None if one is None else (one.rejected, one.of) for one in found]

    scheme = {"signature": "header:X-Hub-Signature-256", "signatureKey": "sha256", "keySeparator": "="}
    same_in_own_words = {"provider": "custom", "scheme": scheme}
    found = await shown(same_in_own_words, {"secondSecret": None}, None, {"provider": "github"})
    assert found == [(0, 3), (1, 3), None, (0, 3)]
    assert await shown({"secret": None}, {"nonsense": 1}, {"provider": "stripe"}) == [None, None, (3, 3)]
    monkeypatch.setattr(remedies, "LAST_CALLS", 2)
    assert await shown({"secondSecret": None}) == [(0, 1)], "the last two, of which one is too large"
    stored = await stored_webhook.stored(house.gateway, webhook.id)
    assert (stored.version, stored.settings.authentication.provider) == (2, "github"), "only tried"  # type: ignore[union-attr]


# --- which sender ----------------------------------------------------------------------------------------------------


async def proposed(house: House, description: str | None) -> list[str]:
    return [one.name for one in await signatures.propose(house.gateway, OWNER, description)]


async def test_a_sender_is_found_by_its_name_its_title_and_what_else_it_is_called(house: House) -> None:
    for name in presets.names():
        preset = presets.get(name)
        for text in (name, name.upper(), *(alias for alias in preset.aliases if " " not in alias)):
            assert name in await proposed(house, text), text
    assert (await proposed(house, "payments,from,Stripe"))[0] == "stripe"
    assert (await proposed(house, "our shop on shopify"))[0] == "shopify"
    assert (await proposed(house, "stripe shopify shopify"))[:2] == ["shopify", "stripe"]
    assert await proposed(house, "gi th ub") == [], "words of two letters are in too many names"
    for nothing in ("", "qqqqq"):
        assert await proposed(house, nothing) == []
    with pytest.raises(Refused, match="invalid_request"):
        await proposed(house, None)
    many = " ".join(presets.names())
    assert len(await proposed(house, many)) == 5


async def test_a_pasted_call_is_what_is_looked_at_before_a_description(house: House) -> None:
    pasted = signatures.TestedCall.model_validate(call())
    found = await signatures.propose(house.gateway, OWNER, "stripe", call=pasted)
    assert "github" in [one.name for one in found] and "stripe" not in [one.name for one in found]
    webhook = await house.webhook()
    invocation = await house.recorded(webhook, headers={"Stripe-Signature": "t=1,v1=" + "0" * 64})
    found = await signatures.propose(house.gateway, OWNER, None, invocation, pasted)
    assert found[0].name == "stripe"


async def test_what_is_reported_a_sender_is_what_its_preset_says(house: House) -> None:
    shown = await signatures.providers(house.gateway, OWNER)
    assert [one.name for one in shown] == presets.names() == senders.names()
    for one in shown:
        preset = presets.get(one.name)
        assert one.scheme == preset.scheme.to_document()
        assert one.sender.timeout_seconds == preset.sender.timeout_seconds
        assert one.synchronous_timeout_seconds == preset.synchronous_timeout_seconds
        for seconds in (one.sender.timeout_seconds, one.synchronous_timeout_seconds):
            assert seconds is None or isinstance(seconds, float)
        assert [sample.event for sample in one.samples] == [sample.event for sample in preset.samples]
        assert senders.page_of(one.name) == preset.page
    needs = {one.name: (one.needs_public_url, one.needs_verify_token, one.sends_arrays) for one in shown}
    assert (needs["github"], needs["meta"]) == ((False, False, False), (False, True, False))
    assert needs["hubspot"] == (True, False, True)
    assert (senders.page_of("custom"), presets.problem_of("custom", "x")) == ("", None)
    assert presets.problem_of("stripe", "x") is not None
