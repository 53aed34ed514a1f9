"""Webhooks that sign, from saving to admitting what was rejected before the fix."""

import asyncio
import base64
import hashlib
import hmac
import json
import time
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from postern import presets
from postern.core.access.accounts import Actor
from postern.core.history.invocation import HistoryFilter
from postern.core.problems import Refused
from postern.core.webhooks.announced import MOST_ANNOUNCED
from postern.usecases.answers import as_plain
from postern.usecases.calls import readmission
from postern.usecases.deliveries import replays
from postern.usecases.history import history
from postern.usecases.shapes import validated
from postern.usecases.signatures import signatures
from postern.usecases.signatures.signatures import SignatureTest
from postern.usecases.webhooks import as_code, webhooks
from postern.usecases.webhooks.preparing import TAKES_OURS
from postern.usecases.webhooks.views import Webhook
from support.house import OWNER, House
from support.refusals import refused

BODY = b'{"id":"evt_1","type":"charge.succeeded"}'


def stripe(secret: str, body: bytes = BODY, at: float | None = None) -> dict[str, str]:
    stamp = str(int(at if at is not None else time.time()))
    signature = hmac.new(secret.encode(), stamp.encode() + b"." + body, hashlib.sha256).hexdigest()
    return {"Stripe-Signature": f"t={stamp},v1={signature}"}


def signed_by(provider: str, secret: Any = "whsec_right", **more: Any) -> dict[str, Any]:
    return {"method": "hmac", "provider": provider, "secret": secret, **more}


async def test_a_newer_preset_changes_nothing_until_its_owner_accepts_it(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    webhook = await house.webhook(authentication=signed_by("stripe"))
    now = presets.get("stripe")
    stricter = msgspec.structs.replace(now.scheme, tolerance_seconds=60)
    monkeypatch.setattr(presets, "get", lambda name: replace(now, version=2, scheme=stricter))
    old = stripe("whsec_right", at=time.time() - 120)

    shown = await webhooks.show(house.gateway, OWNER, webhook.id)
    changes = [{"field": "toleranceSeconds", "saved": 300, "present": 60}]
    assert as_plain(shown.authentication.preset_update) == {"version": 2, "changes": changes}
    await webhooks.change(house.gateway, OWNER, webhook.id, {"name": "Renamed"})
    assert (await house.call(webhook, BODY, headers=old)).status == 200

    await webhooks.change(house.gateway, OWNER, webhook.id, {"authentication": {"presetVersion": 2}})
    assert (await house.call(webhook, BODY, headers=old)).json["code"] == "timestamp_expired"


async def test_a_secret_that_the_sender_makes_is_awaited_until_it_is_set(house: House) -> None:
    generated = {"generate": True}

    async def seen(webhook: dict[str, Any], **changes: Any) -> tuple[bool, bool]:
        """Whether the secret is awaited, by its field and by a warning."""
        if changes:
            await webhooks.change(house.gateway, OWNER, webhook.id, {"authentication": changes})
        shown = await webhooks.show(house.gateway, OWNER, webhook.id)
        return shown.authentication.secret_awaited, any("Stripe" in warning for warning in shown.warnings)

    webhook = await house.webhook(authentication=signed_by("stripe", secret=generated))
    assert await seen(webhook) == (True, True)
    call = await house.recorded(webhook, BODY, headers=stripe("whsec_right"))
    assert (await signatures.explain(house.gateway, OWNER, call)).explanation == signatures.SECRET_AWAITED
    exported = as_plain(await as_code.export(house.gateway, OWNER))
    # No name to look for a secret that nobody has.
    assert exported["webhooks"][0]["authentication"]["secret"] == generated
    assert (await as_code.apply(house.gateway, OWNER, exported, lambda kind, where: None)).changes == []
    assert await seen(webhook, publicUrl="https://else.example.com") == (True, True)
    assert await seen(webhook, secret="whsec_right") == (False, False)
    assert await seen(webhook, secret=generated) == (True, True)
    assert await seen(webhook, secondSecret="whsec_new") == (False, False)
    await webhooks.promote(house.gateway, OWNER, webhook.id, now=True)
    assert await seen(webhook) == (False, False)
    (exported,) = (await as_code.export(house.gateway, OWNER)).webhooks
    assert set(exported["authentication"]["secret"]) == {"env"}

    for provider in TAKES_OURS:
        scheme = {"scheme": {"signature": ["header:X-Own"]}} if provider == "custom" else {}
        ours = await house.webhook(authentication=signed_by(provider, secret=generated, **scheme))
        assert await seen(ours) == (False, False)
    for provider in presets.names():
        assert await house.webhook(authentication=signed_by(provider, secret=generated))


async def test_promote_moves_the_second_secret_with_its_count_and_loses_no_call(house: House) -> None:
    webhook = await house.webhook(authentication=signed_by("stripe", "whsec_old", secondSecret="whsec_new"))
    for secret in ("whsec_old", "whsec_new", "whsec_new"):
        assert (await house.call(webhook, BODY, headers=stripe(secret))).status == 200
    shown = (await webhooks.show(house.gateway, OWNER, webhook.id)).authentication
    assert (shown.secret_use.match_count, shown.second_secret_use.match_count) == (1, 2)

    promoted = (await webhooks.promote(house.gateway, OWNER, webhook.id, now=True)).authentication
    assert (promoted.secret_use.match_count, promoted.second_secret_set) == (2, False)
    assert (await house.call(webhook, BODY, headers=stripe("whsec_new"))).status == 200
    assert (await house.call(webhook, BODY, headers=stripe("whsec_old"))).status == 401


async def test_meta_is_answered_with_the_right_verify_token_only(house: House) -> None:
    webhook = await house.webhook(authentication=signed_by("meta", verifyToken="my-own-verify-token"))
    ask = "hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token="
    assert (
        await house.call(webhook, b"", method="GET", query=ask + "my-own-verify-token")
    ).body == b"1158201444"
    assert (await house.call(webhook, b"", method="GET", query=ask + "guess")).status == 401
    assert (await house.call(webhook, b"", method="GET")).status == 401
    misplaced = {
        "user-agent": "Meta my-own-verify-token",
        "content-type": "text/plain; x=my-own-verify-token",
    }
    await house.call(webhook, b"", headers=misplaced, query="token=my-own-verify-token")
    for call in await house.history():
        kept = (await house.story(call.id)).invocation
        assert b"my-own-verify-token" not in kept.headers + kept.query, call


async def test_the_tester_says_what_would_verify_and_shows_a_reader_no_forgery(house: House) -> None:
    webhook = await house.webhook(authentication=signed_by("stripe"))
    await house.call(webhook, BODY, headers=stripe("whsec_right", at=time.time() - 4000))
    [refused] = await house.history()
    request = validated(SignatureTest, {"webhookId": webhook.id, "invocationId": refused.id})
    for actor, shown in (
        (Actor("reader", "read", "usr_1", "ses_1"), 0),
        (Actor("writer", "write", "usr_2", "ses_2"), 1),
        (Actor("command line", "admin"), 1),
        (Actor("a key", "write", "key_1"), 0),
        (Actor("a key", "admin", "key_2"), 0),
    ):
        seen = await signatures.test(house.gateway, actor, request)
        assert (seen.verified, seen.code) == (False, "timestamp_expired")
        assert seen.signed_content.endswith(BODY.decode())
        assert len(seen.expected) == shown
    assert any("tolerance" in json.dumps(change.patch or {}).lower() for change in seen.would_verify_if)


async def test_what_is_a_handshake_by_now_is_not_admitted_as_a_call(house: House) -> None:
    challenge = b'{"type":"url_verification","challenge":"abc"}'
    webhook = await house.webhook(authentication=signed_by("stripe"))
    rejected = await house.call(webhook, challenge)
    assert rejected.status == 401
    stamp = str(int(time.time()))
    signed = hmac.new(b"whsec_right", f"v0:{stamp}:".encode() + challenge, hashlib.sha256).hexdigest()
    slack = {"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": f"v0={signed}"}
    assert (await house.call(webhook, challenge, headers=slack)).status == 401
    await webhooks.change(house.gateway, OWNER, webhook.id, {"authentication": signed_by("slack")})
    found = await readmission.recheck(house.gateway, OWNER, webhook.id)
    assert (found.would_pass, found.still_rejected, found.cannot_be_admitted) == ([], 1, 1)
    handshake, unsigned = [item.id for item in await house.history()]
    done = await readmission.admit(house.gateway, OWNER, [handshake, unsigned])
    reasons = {one.invocation_id: one.reason for one in done.items}
    assert reasons[handshake] == "it is a set-up handshake of the sender, which starts no workflow"
    assert "X-Slack" in reasons[unsigned]


async def test_what_is_not_admitted_says_why(house: House) -> None:
    webhook = await house.webhook(ipAllowlist=["192.0.2.0/24"])

    async def reason() -> str:
        (one,) = (await readmission.admit(house.gateway, OWNER, [(await house.history())[0].id])).items
        assert not one.admitted
        return one.reason

    assert (await house.call(webhook, peer="198.51.100.1")).status == 403
    assert await reason() == "198.51.100.1 is not on the allowlist"
    assert (await house.call(webhook, b"[]", peer="192.0.2.1")).status == 400
    assert await reason() == "the body is an array, and arrays are refused"


async def test_an_admitted_call_is_replayed_like_any_other_alone_and_among_many(house: House) -> None:
    webhook = await house.webhook(authentication=signed_by("stripe", "whsec_typo"))
    call = await house.recorded(webhook, BODY, headers=stripe("whsec_right"))
    with pytest.raises(Refused, match="check it again and admit it"):
        await history.replay(house.gateway, OWNER, call)
    await webhooks.change(house.gateway, OWNER, webhook.id, {"authentication": {"secret": "whsec_right"}})
    await readmission.admit(house.gateway, OWNER, [call])
    assert (await history.replay(house.gateway, OWNER, call)).delivery.emission == 2
    assert (await replays.plan(house.gateway, OWNER, HistoryFilter())).count == 1


async def test_arrays_of_a_sender_that_sends_them_are_read_as_their_items(house: House) -> None:
    webhook = await house.webhook(
        authentication=signed_by("hubspot", "app-secret"), fieldMapping={"fieldOne": "items[1].objectId"}
    )
    body, stamp = b'[{"eventId":1,"objectId":7},{"eventId":2,"objectId":8}]', str(int(time.time() * 1000))
    signed = b"POST" + webhook.url.encode() + body + stamp.encode()
    signature = base64.b64encode(hmac.new(b"app-secret", signed, hashlib.sha256).digest()).decode()
    headers = {"X-HubSpot-Signature-v3": signature, "X-HubSpot-Request-Timestamp": stamp}
    assert (await house.call(webhook, body, headers=headers)).status == 200
    await house.deliver()
    [trigger] = house.engine.started.values()
    assert trigger.fields == {"fieldOne": "8"} and trigger.payload == b'{"items":' + body + b"}"
    await webhooks.change(house.gateway, OWNER, webhook.id, {"arrays": "refused"})
    assert (await house.call(webhook, body, headers=headers)).json["code"] == "payload_not_an_object"


SIGNED_BY_NOTION = {"signature": ["header:X-Notion-Signature"], "keySeparator": "=", "signatureKey": "sha256"}
NOTION = signed_by("custom", "not-known-yet", scheme={**SIGNED_BY_NOTION, "handshake": "notion"})


async def announced(house: House, webhook: Webhook) -> Any:
    return (await webhooks.show(house.gateway, OWNER, webhook.id)).authentication


def announcement(secret: str) -> bytes:
    return json.dumps({"verification_token": secret}).encode()


def by_notion(secret: str) -> dict[str, str]:
    return {"X-Notion-Signature": "sha256=" + hmac.new(secret.encode(), BODY, hashlib.sha256).hexdigest()}


async def test_a_secret_that_a_sender_announces_is_kept_aside_until_its_owner_takes_it(house: House) -> None:
    webhook = await house.webhook(authentication=NOTION)
    secret = "secret_9YkzAJ0Cq4"
    for _ in range(2):  # a sender that heard no answer sends it again
        assert (await house.call(webhook, announcement(secret), peer="192.0.2.7")).status == 200
    calls = await house.history()
    assert secret not in str([calls, await webhooks.show(house.gateway, OWNER, webhook.id)])
    [one] = (await announced(house, webhook)).announced
    assert (one.invocation_id, one.address) == (calls[-1].id, "192.0.2.7")
    assert one.at == pytest.approx(calls[-1].received_at, abs=0.001)
    assert (await house.call(webhook, BODY, headers=by_notion(secret))).status == 401
    assert (await webhooks.adopt(house.gateway, OWNER, webhook.id)).authentication.announced == []
    assert (await house.call(webhook, BODY, headers=by_notion(secret))).status == 200


async def test_whose_announcement_is_taken_is_not_left_to_chance(house: House) -> None:
    """The sender's first, then a stranger's: anybody who knows the URL can announce one."""
    webhook = await house.webhook(authentication=NOTION)
    await house.call(webhook, announcement("secret_of-the-sender"))
    seen = await webhooks.show(house.gateway, OWNER, webhook.id)
    for number in range(MOST_ANNOUNCED - 1):
        assert (await house.call(webhook, announcement(f"stranger-{number}"))).status == 200
    for number in range(2):  # there is no room for more, and nobody is told that there is
        turned_away = await house.call(webhook, announcement(f"stranger-more-{number}"))
        assert (turned_away.status, turned_away.json["code"]) == (409, "conflict")
    full = await webhooks.show(house.gateway, OWNER, webhook.id)
    assert full.version == seen.version + MOST_ANNOUNCED - 1
    how: Any = full.authentication
    assert (len(how.announced), how.announced_not_kept) == (MOST_ANNOUNCED, 2)
    mine = how.announced[0].invocation_id
    for asked, code in (
        (webhooks.adopt(house.gateway, OWNER, webhook.id, mine, seen.version), "version_conflict"),
        (webhooks.adopt(house.gateway, OWNER, webhook.id), "conflict"),
        (webhooks.adopt(house.gateway, OWNER, webhook.id, turned_away.json["invocationId"]), "not_found"),
    ):
        assert (await refused(asked)).code == code
    await webhooks.adopt(house.gateway, OWNER, webhook.id, mine, full.version)
    assert (await house.call(webhook, BODY, headers=by_notion("secret_of-the-sender"))).status == 200
    assert (await house.call(webhook, BODY, headers=by_notion("stranger-3"))).status == 401
    assert (await announced(house, webhook)).announced_not_kept == 0


async def test_five_secrets_that_one_network_announced_leave_room_for_a_sender_elsewhere(
    house: House,
) -> None:
    webhook = await house.webhook(authentication=NOTION)
    for number in range(MOST_ANNOUNCED):
        await house.call(webhook, announcement(f"stranger-{number}"), peer=f"2001:db8::{number + 1}")
    for name, peer, status in (
        ("the-senders", "192.0.2.7", 200),
        ("stranger-once-more", "2001:db8::99", 409),
        ("stranger-beside-the-sender", "192.0.2.7", 409),
        ("stranger-elsewhere", "198.51.100.1", 200),
    ):
        assert (await house.call(webhook, announcement(name), peer=peer)).status == status, name
    kept = [one.address for one in (await announced(house, webhook)).announced]
    assert kept == [*(f"2001:db8::{number + 1}" for number in range(3)), "192.0.2.7", "198.51.100.1"]
    assert (await announced(house, webhook)).announced_not_kept == 4


async def test_what_was_announced_is_forgotten_with_the_secret_it_would_have_replaced(house: House) -> None:
    webhook = await house.webhook(authentication=NOTION)
    for number in range(MOST_ANNOUNCED + 1):
        await house.call(webhook, announcement(f"stranger-{number}"))
    await webhooks.change(house.gateway, OWNER, webhook.id, {"authentication": {"secondSecret": "whsec_two"}})
    assert len((await announced(house, webhook)).announced) == MOST_ANNOUNCED
    await webhooks.change(house.gateway, OWNER, webhook.id, {"authentication": {"secret": "whsec_another"}})
    how = await announced(house, webhook)
    assert (how.announced, how.announced_not_kept) == ([], 0)
    assert (await house.call(webhook, announcement("secret_of-the-sender"))).status == 200


async def test_who_announces_a_secret_is_answered_when_it_is_on_disk(house: House) -> None:
    webhook = await house.webhook(authentication=NOTION)
    keep, kept = house.gateway.store.webhooks.announce, asyncio.Event()

    async def slowly(*given: Any) -> bool:
        for _ in range(10):
            await asyncio.sleep(0)  # whoever was told something would have it by now
        assert not calling.done(), "answered before there was anything to promise"
        kept.set()
        return await keep(*given)

    house.gateway.store.webhooks.announce = slowly  # type: ignore[method-assign]
    calling = asyncio.create_task(house.call(webhook, announcement("secret_9YkzAJ0Cq4")))
    assert (await calling).status == 200
    assert kept.is_set()


async def test_xero_hears_no_body_whatever_the_answer(house: House) -> None:
    webhook = await house.webhook(authentication=signed_by("xero", "xero-key"))

    async def reply(body: bytes) -> tuple[int, bytes, bool]:
        good = base64.b64encode(hmac.new(b"xero-key", body, hashlib.sha256).digest()).decode()
        answer = await house.call(webhook, body, headers={"x-xero-signature": good})
        return answer.status, answer.body, "content-type" in answer.headers

    assert await reply(b'{"events":[{"resourceId":"1"}],"entropy":"x"}') == (200, b"", False)
    assert await reply(b"nonsense") == (400, b"", False)
    assert (await house.call(webhook, method="PUT")).body == b""
    codes = [one.code for one in await house.history()]
    assert codes == ["method_not_allowed", "malformed_json", "accepted"]


async def test_slacks_unsigned_check_of_the_certificate_is_answered_and_starts_nothing(house: House) -> None:
    webhook = await house.webhook(authentication=signed_by("slack"))
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = await house.call(webhook, b"token=abc&ssl_check=1", headers=form)
    assert (answer.status, answer.body) == (200, b"")
    assert (await house.call(webhook, b"token=abc&ssl_check=10", headers=form)).status == 401
    await house.deliver()
    assert house.engine.started == {}
