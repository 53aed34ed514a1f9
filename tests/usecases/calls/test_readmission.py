"""Rejected calls that the current settings would let in: found, and started once."""

import asyncio
import base64
import hmac
import time
from pathlib import Path
from typing import Any, get_args

import pytest

from postern.core.history.invocation import HistoryFilter
from postern.core.problems import Refused
from postern.core.signatures.credential import Placement, TokenCredential
from postern.stores.secrets.vault import Vault
from postern.usecases.access import audit
from postern.usecases.calls import readmission
from postern.usecases.deliveries import holds, replays
from postern.usecases.history import history
from postern.usecases.operations import retention
from postern.usecases.webhooks import webhooks
from support.clock import later
from support.house import OWNER, House
from support.refusals import fields_refused, refused

SECRET = "a secret that is long enough"
PROTECTION_IS_OFF = (
    "Duplicate protection is off: calls with the same delivery id or the same body count as one event here, and what the "
    "sender still sends again by itself starts its workflow once more."
)
TOKEN = {"method": "token", "token": "whk_0123456789abcdef"}


async def rejected(house: House, bodies: tuple[bytes, ...], **settings: Any) -> tuple[Any, list[str]]:
    """A webhook that rejected these for a mistyped secret and would accept them now, the oldest first."""
    signs = {"method": "hmac", "provider": "github", "secret": "mistyped"}
    webhook = await house.webhook(authentication=signs, **settings)
    for body in bodies:
        assert (await house.call(webhook, body, headers=signed(body))).status == 401
    calls = [one.id for one in reversed(await house.history(webhook_id=webhook.id))]
    await webhooks.change(house.gateway, OWNER, webhook.id, {"authentication": {"secret": SECRET}})
    return webhook, calls


def signed(body: bytes) -> dict[str, str]:
    return {"X-Hub-Signature-256": f"sha256={hmac.digest(SECRET.encode(), body, 'sha256').hex()}"}


def generic() -> dict[str, str]:
    """The headers of one delivery, whatever its body."""
    now = str(int(time.time()))
    signature = hmac.digest(SECRET.encode(), f"evt_1\n{now}".encode(), "sha256").hex()
    return {"X-Webhook-Id": "evt_1", "X-Webhook-Timestamp": now, "X-Signature": signature}


async def test_all_that_pass_are_admitted_unless_they_are_more_than_were_expected(house: House) -> None:
    webhook, calls = await rejected(house, (b'{"n": 1}', b'{"n": 2}'))
    with pytest.raises(Refused, match="2 calls would start now, and 1 event were expected"):
        await readmission.admit_all(house.gateway, OWNER, webhook.id, 1)
    done = await readmission.admit_all(house.gateway, OWNER, webhook.id, 2)
    assert (done.admitted, [one.invocation_id for one in done.items]) == (2, calls)
    assert (await readmission.admit_all(house.gateway, OWNER, webhook.id)).items == []


async def test_an_array_of_calls_is_admitted_as_each_of_its_elements(house: House) -> None:
    webhook, (call,) = await rejected(
        house, (b'[{"n":1},{"n":2}]',), fieldMapping={"fieldOne": "n"}, arrays="each"
    )
    assert (await readmission.admit_all(house.gateway, OWNER, webhook.id, 1)).admitted == 1
    await house.deliver()
    assert sorted(one.fields["fieldOne"] for one in house.engine.started.values()) == ["1", "2"]
    assert [one.status for one in await house.history() if one.id == call] == ["completed"]
    (again,) = (await readmission.admit(house.gateway, OWNER, [call])).items
    assert again.reason == "it has been admitted before"
    assert (await readmission.recheck(house.gateway, OWNER, webhook.id)).would_pass == []

    # A workflow for elements does not expect the whole array.
    with pytest.raises(Refused, match="each element was started as a call of its own"):
        await history.replay(house.gateway, OWNER, call)
    plan = await replays.plan(house.gateway, OWNER, HistoryFilter(webhook.id), include_completed=True)
    await replays.begin(house.gateway, OWNER, plan.id)
    await replays.Replayer(house.gateway).round()
    shown = await replays.show(house.gateway, OWNER, plan.id)
    assert (shown.count, shown.done, shown.skipped) == (3, 2, 1)


async def test_elements_of_an_array_with_a_signed_delivery_id_all_start(house: House) -> None:
    """Of those that come, and of those that are admitted: all have the signed delivery id of their array."""
    protected = {"arrays": "each", "duplicateProtection": {"enabled": True}}
    how = {"method": "hmac", "provider": "generic", "secret": SECRET}
    webhook = await house.webhook(authentication=how, **protected)
    for started, secret in ((2, SECRET), (4, "mistyped")):
        await webhooks.change(house.gateway, OWNER, webhook.id, {"authentication": {"secret": secret}})
        await house.call(webhook, b'[{"n":%d},{"n":%d}]' % (started, started + 1), headers=generic())
        await webhooks.change(house.gateway, OWNER, webhook.id, {"authentication": {"secret": SECRET}})
        await readmission.admit_all(house.gateway, OWNER, webhook.id)
        await house.deliver()
        assert len(house.engine.started) == started


async def test_elements_that_were_admitted_late_are_the_first_ones_for_their_duplicates(house: House) -> None:
    array, protection = b'[{"n":1},{"n":2}]', {"enabled": True, "windowSeconds": 3600}
    webhook, _ = await rejected(house, (array,), arrays="each", duplicateProtection=protection)
    later(house.gateway, 7200)
    assert (await readmission.admit_all(house.gateway, OWNER, webhook.id)).admitted == 1
    assert (await house.call(webhook, array, headers=signed(array))).json["status"] == "duplicate"


async def test_an_admitted_element_says_what_the_caller_of_its_array_heard(house: House) -> None:
    webhook, (call,) = await rejected(house, (b'[{"n":1},{"n":2},7]',), arrays="each")
    await readmission.admit(house.gateway, OWNER, [call])
    elements = [one for one in await house.history() if one.id != call]
    assert [(one.http_status, one.admitted_from, one.edited_from) for one in elements] == [
        (401, call, None)
    ] * 3
    shown = await history.show(house.gateway, OWNER, elements[0].id)
    assert shown.uncalled == f"admitted from {call}; its caller heard 401"
    assert set((await history.show(house.gateway, OWNER, call)).edited_replays) == {
        one.id for one in elements
    }
    assert (await webhooks.show(house.gateway, OWNER, webhook.id)).call_count == 1, "one call came"


async def test_what_would_pass_is_reported_with_its_values_the_oldest_first(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    webhook, calls = await rejected(
        house, (b'{"n":1}', b'{"n":2}', b"not json"), fieldMapping={"fieldOne": "n"}
    )
    found = await readmission.recheck(house.gateway, OWNER, webhook.id)
    assert [one.invocation_id for one in found.would_pass] == calls[:2]
    assert [one.fields for one in found.would_pass] == [{"fieldOne": "1"}, {"fieldOne": "2"}]
    assert (found.webhook_id, found.still_rejected, found.came_again) == (webhook.id, 1, [])
    assert not house.engine.started
    assert found.in_words == [
        "2 calls would start now.",
        "1 call would still be rejected: malformed JSON (1).",
        "0 calls cannot be admitted.",
        PROTECTION_IS_OFF,
    ]
    monkeypatch.setattr(readmission, "MOST_JUDGED", 1)
    monkeypatch.setattr(readmission, "PORTION", 1)
    few = await readmission.recheck(house.gateway, OWNER, webhook.id)
    assert ([one.invocation_id for one in few.would_pass], few.all_judged) == (calls[:1], False)
    assert few.in_words[0] == "At least 1 call would start now."
    assert (await refused(readmission.recheck(house.gateway, OWNER, "wh_none"))).code == "not_found"


async def test_every_call_of_a_burst_that_a_wrong_secret_rejected_is_admitted(house: House) -> None:
    awaited = {"method": "hmac", "provider": "shopify", "secret": {"generate": True}}
    webhook = await house.webhook(authentication=awaited)
    bodies = [b'{"order":%d,"lines":"%s"}' % (order, b"x" * 100_000) for order in range(60)]
    for body in bodies:
        signature = base64.b64encode(hmac.digest(SECRET.encode(), body, "sha256")).decode()
        heard = await house.call(webhook, body, headers={"X-Shopify-Hmac-Sha256": signature})
        assert (heard.status, heard.json["code"]) == (401, "signature_mismatch")
    await webhooks.change(house.gateway, OWNER, webhook.id, {"authentication": {"secret": SECRET}})
    found = await readmission.recheck(house.gateway, OWNER, webhook.id)
    done = await readmission.admit(house.gateway, OWNER, [one.invocation_id for one in found.would_pass])
    assert (done.admitted, found.still_rejected, found.not_kept) == (60, 0, 0)


async def test_what_was_counted_and_not_kept_is_said(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("postern.core.limits.MOST_REJECTED_AT_ONCE", 0)
    webhook, _ = await rejected(house, (b"{}",) * 23)
    await house.call(webhook, method="GET")
    await retention.write_counts(house.gateway)
    monkeypatch.setattr(retention, "REJECTED_BYTES", 20_000)
    found = await readmission.recheck(house.gateway, OWNER, webhook.id)
    assert (found.calls, found.not_kept) == (20, 3), "without the one whose body was not read"
    went = await retention.trim(house.gateway, webhook.id)
    found = await readmission.recheck(house.gateway, OWNER, webhook.id)
    assert went > 0 and (found.calls, found.not_kept) == (20 - went, 3 + went)


async def test_what_is_admitted_is_started_announced_and_written_down_once(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, (first, second) = await rejected(house, (b'{"n":1}', b'{"n":2}'))
    touched: list[str] = []
    monkeypatch.setattr(house.gateway.runtime.live, "touch", touched.append)
    house.gateway.runtime.engine.due.clear()
    done = await readmission.admit(house.gateway, OWNER, [first])
    (item,) = done.items
    assert (done.admitted, item.admitted, item.reason) == (1, True, "")
    assert item.delivery_key == f"{first}.1"
    assert (touched, house.gateway.runtime.engine.due.is_set()) == ([first], True)
    again = await readmission.admit(house.gateway, OWNER, [first, second])
    reasons = [(one.admitted, one.reason) for one in again.items]
    assert reasons == [(False, "it has been admitted before"), (True, "")]
    assert (again.admitted, touched) == (1, [first, second])
    await house.deliver()
    assert len(house.engine.started) == 2
    (note,) = (await audit.listing(house.gateway, OWNER, subject=first)).items
    assert note.action == "rejected call admitted"
    shown = await history.show(house.gateway, OWNER, first)
    assert shown.deliveries[0].asked_by == "owner"


async def test_a_held_webhook_holds_what_is_admitted(house: House) -> None:
    webhook, (call,) = await rejected(house, (b'{"n":1}',))
    await holds.hold(house.gateway, OWNER, webhook.id)
    await readmission.admit(house.gateway, OWNER, [call])
    assert (await history.show(house.gateway, OWNER, call)).status == "held"


async def test_an_admitted_call_is_the_first_one_for_its_duplicates(house: House) -> None:
    webhook, (one, same) = await rejected(
        house, (b'{"id":7,"n":1}', b'{"id":7,"n":2}'), duplicateProtection={"enabled": True, "key": "body:id"}
    )
    done = await readmission.admit(house.gateway, OWNER, [one, same])
    another = f"it is another attempt at the event of {one}, which came in"
    assert [(item.result, item.reason) for item in done.items] == [("admitted", ""), ("left_out", another)]
    body = b'{"id":7,"n":3}'
    heard = await house.call(webhook, body, headers=signed(body))
    assert heard.json == {"status": "duplicate", "invocationId": one}


async def test_a_thousand_are_admitted_at_once_and_no_more(house: House) -> None:
    wrong = await fields_refused(readmission.admit(house.gateway, OWNER, ["inv_none"] * 1_001))
    assert list(wrong) == ["invocationIds"]
    assert (await refused(readmission.admit(house.gateway, OWNER, ["inv_none"] * 1_000))).code == "not_found"


async def test_what_would_become_of_one_call_is_said_with_the_reason(house: House) -> None:
    webhook, (call, text) = await rejected(house, (b'{"n":1}', b"no json"))

    async def stands(one: str) -> tuple[str, str]:
        return await readmission.standing(house.gateway, OWNER, one)

    assert await stands(call) == ("starts", "")
    assert (await stands(text))[0] == "still_rejected"
    await webhooks.change(house.gateway, OWNER, webhook.id, {"authentication": {"method": "none"}})
    assert await stands(call) == ("starts", "")
    accepted = await house.recorded(webhook, b'{"n":1}')
    assert await stands(call) == (
        "came_again",
        f"the sender sent it again, and it was accepted as {accepted}",
    )
    assert await stands(accepted) == ("cannot_be_admitted", "it was not rejected")
    await webhooks.switch(house.gateway, OWNER, webhook.id, False)
    assert await stands(call) == ("still_rejected", "its webhook is disabled and starts nothing")
    await webhooks.remove(house.gateway, OWNER, webhook.id)
    assert await stands(call) == ("cannot_be_admitted", "its webhook has been deleted")


def attempts(bodies: int, times: int) -> tuple[bytes, ...]:
    return tuple(b'{"order":%d}' % order for _ in range(times) for order in range(bodies))


@pytest.mark.parametrize("protection", [{}, {"duplicateProtection": {"enabled": True}}], ids=["off", "on"])
async def test_six_attempts_at_an_event_start_it_once(
    house: House, protection: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readmission, "PORTION", 5)  # attempts at one event are judged apart
    webhook, calls = await rejected(house, attempts(3, 6), **protection)
    oldest: dict[Any, str] = {}
    for call in calls:
        oldest.setdefault((await house.story(call)).invocation.body, call)
    found = await readmission.recheck(house.gateway, OWNER, webhook.id)
    assert (found.counted, found.events, found.calls) == ("18 calls, 3 events", 3, 18)
    assert [(one.invocation_id, one.attempts) for one in found.would_pass] == [
        (one, 6) for one in oldest.values()
    ]
    assert (PROTECTION_IS_OFF in found.in_words) == (not protection)
    done = await readmission.admit_all(house.gateway, OWNER, webhook.id, 3)
    assert (done.admitted, done.left_out) == (3, 15)
    why = {one.reason for one in done.items if not one.admitted}
    assert why <= {
        f"it is another attempt at the event of {one}, which was admitted" for one in oldest.values()
    }
    assert why, "those that were judged together"
    await house.deliver()
    assert sorted(one.invocation_id for one in house.engine.started.values()) == list(oldest.values())
    after = await readmission.recheck(house.gateway, OWNER, webhook.id)
    assert (after.calls, after.events, len(after.came_again)) == (0, 0, 15)
    assert {one.accepted_as for one in after.came_again} == {*oldest.values()}
    one_more = await readmission.admit(house.gateway, OWNER, calls)
    assert {one.result for one in one_more.items} == {"left_out"}
    await house.deliver()
    assert len(house.engine.started) == 3


async def test_the_signed_delivery_id_of_attempts_with_other_bodies_is_one_event(house: House) -> None:
    """And one that is not signed is not enough: with it a stranger could keep another event out."""
    for provider, events in (("generic", 1), ("github", 2)):
        signs = {"method": "hmac", "provider": provider, "secret": "mistyped"}
        webhook = await house.webhook(authentication=signs)
        for body in (b'{"n":1}', b'{"n":2}'):
            named = generic() if provider == "generic" else signed(body) | {"X-GitHub-Delivery": "evt_1"}
            assert (await house.call(webhook, body, headers=named)).status == 401
        await webhooks.change(house.gateway, OWNER, webhook.id, {"authentication": {"secret": SECRET}})
        assert (await readmission.recheck(house.gateway, OWNER, webhook.id)).events == events
        assert (await readmission.admit_all(house.gateway, OWNER, webhook.id)).admitted == events


async def test_without_protection_the_same_body_under_another_delivery_id_is_the_same_event(
    house: House,
) -> None:
    webhook, _ = await rejected(house, ())
    await webhooks.change(house.gateway, OWNER, webhook.id, {"authentication": {"secret": "mistyped"}})
    for name in ("evt_1", "evt_2"):
        await house.call(webhook, b"{}", headers=signed(b"{}") | {"X-GitHub-Delivery": name})
    await webhooks.change(house.gateway, OWNER, webhook.id, {"authentication": {"secret": SECRET}})
    assert (await readmission.recheck(house.gateway, OWNER, webhook.id)).counted == "2 calls, 1 event"


async def test_a_retried_array_whose_elements_came_in_is_not_admitted(house: House) -> None:
    array, part = b'[{"n":1},{"n":2}]', b'[{"n":1},{"n":3}]'
    webhook, (call,) = await rejected(house, (array,), arrays="each")
    assert (await house.call(webhook, part, headers=signed(part))).status == 200
    assert (await readmission.standing(house.gateway, OWNER, call))[0] == "starts", (
        "its second one has not come"
    )
    assert (await house.call(webhook, array, headers=signed(array))).status == 200
    assert (await readmission.admit_all(house.gateway, OWNER, webhook.id)).items == []
    assert (await readmission.standing(house.gateway, OWNER, call))[0] == "came_again"


async def test_two_people_who_admit_at_the_same_moment_start_each_event_once(house: House) -> None:
    webhook, _ = await rejected(house, attempts(10, 3))
    both = await asyncio.gather(
        *(readmission.admit_all(house.gateway, OWNER, webhook.id, expected) for expected in (10, None, None))
    )
    assert sum(one.admitted for one in both) == 10
    await house.deliver()
    assert len(house.engine.started) == 10


async def test_more_than_can_be_started_at_once_are_started_by_the_next_request(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    webhook, calls = await rejected(house, attempts(5, 1))
    monkeypatch.setattr(readmission, "MOST_ADMITTED", 2)
    monkeypatch.setattr(readmission, "TOGETHER", 2)
    numbers = [await readmission.admit_all(house.gateway, OWNER, webhook.id) for _ in range(3)]
    assert [(one.admitted, one.more) for one in numbers] == [(2, True), (2, True), (1, False)]
    await house.deliver()
    assert sorted(one.invocation_id for one in house.engine.started.values()) == calls


async def test_whoever_asks_while_many_are_judged_hears_how_far_it_has_come(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    webhook, _ = await rejected(house, attempts(12, 1))
    monkeypatch.setattr(readmission, "PORTION", 3)
    goes_on = asyncio.Event()
    read = house.gateway.store.history.rejected

    async def waits(webhook_id: str, after: str, *bounds: int) -> Any:
        if after:
            await goes_on.wait()
        return await read(webhook_id, after, *bounds)

    monkeypatch.setattr(house.gateway.store.history, "rejected", waits)
    part = await readmission.recheck_within(house.gateway, OWNER, webhook.id, 0.2)
    assert (part.under_way, part.judged, part.counted) == (True, 3, "at least 3 calls")
    goes_on.set()
    whole = await readmission.recheck(house.gateway, OWNER, webhook.id)
    assert (whole.under_way, whole.judged, whole.counted) == (False, 12, "12 calls")
    assert house.gateway.runtime.rechecks == {}


async def test_what_came_before_it_is_no_attempt_at_it_where_protection_is_off_or_over(house: House) -> None:
    for protection in ({"enabled": False}, {"enabled": True, "windowSeconds": 60}):
        webhook, _ = await rejected(house, (b'{"n":1}',), duplicateProtection=protection)
        await house.recorded(webhook, b'{"n":2}', headers=signed(b'{"n":2}'))
        later(house.gateway, 3600)
        await webhooks.change(house.gateway, OWNER, webhook.id, {"authentication": {"secret": "mistyped"}})
        assert (await house.call(webhook, b'{"n":2}', headers=signed(b'{"n":2}'))).status == 401
        await webhooks.change(house.gateway, OWNER, webhook.id, {"authentication": {"secret": SECRET}})
        assert (await readmission.recheck(house.gateway, OWNER, webhook.id)).events == 2
        assert (await readmission.admit_all(house.gateway, OWNER, webhook.id)).admitted == 2


async def test_a_portion_has_as_many_calls_as_its_bytes_allow_and_names_a_few_of_them(house: House) -> None:
    webhook, calls = await rejected(house, attempts(21, 1))
    for most, count in ((1, 1), (11, 1), (29, 2), (1000, 21)):  # of 11 bytes each, 12 from the tenth on
        found = await house.gateway.store.history.rejected(webhook.id, "", 200, most)
        assert [one.id for one in found] == calls[:count]
    await webhooks.change(house.gateway, OWNER, webhook.id, {"authentication": {"secret": "mistyped"}})
    (why,) = (await readmission.recheck(house.gateway, OWNER, webhook.id)).still_rejected_because
    assert (why.calls, why.invocation_ids) == (21, calls[:20])


@pytest.mark.parametrize(
    ("wrong", "right", "status"),
    [
        ({"ipAllowlist": ["203.0.113.0/24"]}, {"ipAllowlist": []}, 403),
        ({"cors": {"enabled": True, "origins": ["https://a.example"]}}, {"cors": {"enabled": False}}, 403),
        ({"enabled": False}, {"enabled": True}, 403),
    ],
)
async def test_what_a_setting_turned_away_is_admitted_when_it_is_corrected(
    house: House, wrong: dict[str, Any], right: dict[str, Any], status: int
) -> None:
    webhook = await house.webhook(**{name: value for name, value in wrong.items() if name != "enabled"})
    if "enabled" in wrong:
        await webhooks.switch(house.gateway, OWNER, webhook.id, False)
    page = {"origin": "https://b.example"}
    assert (await house.call(webhook, b'{"n":1}', headers=page)).status == status
    big = await house.call(webhook, b"x" * 2**21, headers=page | {"content-length": str(2**21)})
    assert (big.status, big.json["code"]) == (status, (await house.history())[0].code), (
        "heard as without a body"
    )
    assert (await readmission.recheck(house.gateway, OWNER, webhook.id)).calls == 0
    if "enabled" in right:
        await webhooks.switch(house.gateway, OWNER, webhook.id, True)
    else:
        await webhooks.change(house.gateway, OWNER, webhook.id, right)
    found = await readmission.recheck(house.gateway, OWNER, webhook.id)
    assert (found.counted, [one.reason for one in found.cannot_because]) == (
        "1 call",
        ["its body was never read"],
    )
    assert (await readmission.admit_all(house.gateway, OWNER, webhook.id, 1)).admitted == 1
    await house.deliver()
    assert len(house.engine.started) == 1


async def test_a_call_that_was_too_large_says_that_its_body_was_not_kept(house: House) -> None:
    webhook = await house.webhook(payloadLimitBytes=1024)
    bodies = ((b"x" * 2000, {"content-length": "2000"}), (b"x" * 2000, {"transfer-encoding": "chunked"}))
    for body, headers in bodies:
        assert (await house.call(webhook, body, headers=headers)).status == 413
    await webhooks.change(house.gateway, OWNER, webhook.id, {"payloadLimitBytes": 4096})
    found = await readmission.recheck(house.gateway, OWNER, webhook.id)
    assert found.in_words[:3] == [
        "0 calls would start now.",
        "0 calls would still be rejected.",
        "2 calls cannot be admitted: its body was larger than the payload limit, so it was not kept (2).",
    ]
    done = await readmission.admit_all(house.gateway, OWNER, webhook.id)
    assert (done.admitted, done.still_rejected, done.cannot_be_admitted) == (0, 0, 2)


RIGHT, WRONG = "whk_the_right_token_0123456789", "whk_a_wrong_token_0123456789"


def carrying(placement: str, token: str) -> dict[str, Any]:
    """A call with the token in that place."""
    basic = base64.b64encode(f"shop:{token}".encode()).decode()
    return {
        "header": {"headers": {"X-Api-Key": token}},
        "bearer": {"headers": {"Authorization": f"Bearer {token}"}},
        "basic": {"headers": {"Authorization": f"Basic {basic}"}},
        "url": {"query": f"token={token}"},
        "body": {"body": b'{"token":"%s"}' % token.encode()},
    }[placement]


def standings(found: Any) -> dict[str, dict[str, int]]:
    """How many calls would start, and the reasons why the others would not."""
    return {
        "starts": {"": found.calls} if found.calls else {},
        "still": {one.reason: one.calls for one in found.still_rejected_because},
        "cannot": {one.reason: one.calls for one in found.cannot_because},
    }


MISMATCH, MISSING = "credential does not match", "credential missing"


@pytest.mark.parametrize("placement", get_args(Placement))
async def test_calls_of_a_wrong_token_start_once_it_was_corrected(
    house: House, placement: str, tmp_path: Path
) -> None:
    how = {"method": "token", "placement": placement, "username": "shop" if placement == "basic" else None}
    webhook = await house.webhook(authentication={**how, "token": WRONG})
    for sent in (carrying(placement, RIGHT), carrying(placement, "whk_of_a_stranger_9876543210"), {}):
        assert (await house.call(webhook, **sent)).status == 401
    before = standings(await readmission.recheck(house.gateway, OWNER, webhook.id))
    assert before == {"starts": {}, "still": {MISMATCH: 2, MISSING: 1}, "cannot": {}}
    await webhooks.change(house.gateway, OWNER, webhook.id, {"authentication": {"token": RIGHT}})
    found = await readmission.recheck(house.gateway, OWNER, webhook.id)
    assert standings(found) == {"starts": {"": 1}, "still": {MISMATCH: 1, MISSING: 1}, "cannot": {}}
    # As the second token it is right as well.
    await webhooks.change(house.gateway, OWNER, webhook.id, {"authentication": {"token": WRONG}})
    await webhooks.change(house.gateway, OWNER, webhook.id, {"authentication": {"secondToken": RIGHT}})
    assert (await readmission.admit_all(house.gateway, OWNER, webhook.id, 1)).admitted == 1
    await house.deliver()
    (started,) = house.engine.started.values()
    assert RIGHT.encode() not in started.payload
    assert not [one for one in (tmp_path / "data").glob("*.db*") if RIGHT.encode() in one.read_bytes()]


async def test_what_came_in_the_wrong_place_starts_once_the_place_was_corrected(house: House) -> None:
    webhook = await house.webhook(authentication={"method": "token", "token": RIGHT})
    for token in (RIGHT, WRONG):
        assert (await house.call(webhook, **carrying("bearer", token))).status == 401
    place = {"authentication": {"placement": "bearer"}}
    await webhooks.change(house.gateway, OWNER, webhook.id, place)
    found = standings(await readmission.recheck(house.gateway, OWNER, webhook.id))
    # A token in a place where nobody looked, and that was not the right one, left nothing to compare.
    masked = {"its token was masked and cannot be checked again": 1}
    assert found == {"starts": {"": 1}, "still": {}, "cannot": masked}
    await webhooks.change(house.gateway, OWNER, webhook.id, {"authentication": {"placement": "url"}})
    found = standings(await readmission.recheck(house.gateway, OWNER, webhook.id))
    assert found == {"starts": {}, "still": {MISSING: 2}, "cannot": {}}


async def test_a_wrong_name_of_basic_and_a_setting_that_turned_a_token_away_are_corrected(
    house: House,
) -> None:
    how = {"method": "token", "placement": "basic", "username": "shp", "token": RIGHT}
    webhook = await house.webhook(authentication=how, ipAllowlist=["127.0.0.1"])
    assert (await house.call(webhook, **carrying("basic", RIGHT))).status == 401
    await webhooks.change(house.gateway, OWNER, webhook.id, {"ipAllowlist": ["203.0.113.0/24"]})
    for token in (RIGHT, WRONG):
        assert (await house.call(webhook, b'{"n":1}', **carrying("basic", token))).status == 403
    found = standings(await readmission.recheck(house.gateway, OWNER, webhook.id))
    assert found == {"starts": {}, "still": {"address not allowed": 3}, "cannot": {}}
    corrected = {"ipAllowlist": [], "authentication": {"username": "shop"}}
    await webhooks.change(house.gateway, OWNER, webhook.id, corrected)
    found = standings(await readmission.recheck(house.gateway, OWNER, webhook.id))
    assert found == {"starts": {"": 2}, "still": {MISMATCH: 1}, "cannot": {}}


async def test_a_fingerprint_is_compared_with_its_own_key_and_for_its_own_call(
    house: House, tmp_path: Path
) -> None:
    webhook = await house.webhook(authentication={"method": "token", "token": WRONG})
    for _ in range(2):
        await house.call(webhook, **carrying("header", RIGHT))
    store = house.gateway.store
    one, other = [one.id for one in await house.history()]
    kept = await store.history.masked_tokens([one, other])
    assert len(set(kept.values())) == 2, "the same token, and nothing says so"
    await webhooks.change(house.gateway, OWNER, webhook.id, {"authentication": {"token": RIGHT}})
    old = (tmp_path / "data" / "secret.key").read_text().strip()
    for keys, calls in ((["new", old], 2), (["new"], 0)):
        store.vault = Vault(keys)
        found = await readmission.recheck(house.gateway, OWNER, webhook.id)
        assert (found.calls, found.cannot_be_admitted) == (calls, 2 - calls)
    vault = Vault(["new"])
    mark = vault.fingerprint(b"x", one)
    assert (vault.has_fingerprint(b"x", one, mark), vault.has_fingerprint(b"x", other, mark)) == (True, False)
    assert RIGHT.encode() != vault.fingerprint(RIGHT.encode(), one).encode() and len(mark) <= 80


async def test_a_body_is_looked_through_for_its_token_once(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[bytes] = []
    look = TokenCredential._masked_body

    def noting(self: TokenCredential, call: Any) -> bytes | None:
        looked.append(call.body)
        return look(self, call)

    monkeypatch.setattr(TokenCredential, "_masked_body", noting)
    webhook = await house.webhook(authentication={"method": "token", "placement": "body", "token": RIGHT})
    call = await house.recorded(webhook, **carrying("body", RIGHT))
    assert len(looked) == 1 and RIGHT.encode() not in ((await house.story(call)).invocation.body or b"")
