"""Rejected calls that the current settings would let in: found, and started once."""

import base64
import hmac
from typing import Any

import pytest

from postern.core.history.invocation import HistoryFilter
from postern.core.problems import Refused
from postern.usecases.access import audit
from postern.usecases.calls import readmission
from postern.usecases.deliveries import holds, replays
from postern.usecases.history import history
from postern.usecases.operations import retention
from postern.usecases.webhooks import webhooks
from support.house import OWNER, House
from support.refusals import fields_refused, refused

SECRET = "a secret that is long enough"
TOKEN = {"method": "token", "token": "whk_0123456789abcdef"}


async def rejected(house: House, bodies: tuple[bytes, ...], **settings: Any) -> tuple[Any, list[str]]:
    """A webhook that rejected these for a mistyped secret and would accept them now, the oldest first."""
    signs = {"method": "hmac", "provider": "github", "secret": "mistyped"}
    webhook = await house.webhook(authentication=signs, **settings)
    for body in bodies:
        assert (await house.call(webhook, body, headers=signed(body))).status == 401
    calls = [one.id for one in reversed(await house.history())]
    await webhooks.change(house.gateway, OWNER, webhook.id, {"authentication": {"secret": SECRET}})
    return webhook, calls


def signed(body: bytes) -> dict[str, str]:
    return {"X-Hub-Signature-256": f"sha256={hmac.digest(SECRET.encode(), body, 'sha256').hex()}"}


async def test_all_that_pass_are_admitted_unless_they_are_more_than_were_expected(house: House) -> None:
    webhook, calls = await rejected(house, (b'{"n": 1}', b'{"n": 2}'))
    with pytest.raises(Refused, match="2 calls pass now, and 1 were expected"):
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
    monkeypatch.setattr(readmission, "MOST_RECHECKED", 1)
    monkeypatch.setattr(readmission, "PAGE", 1)
    few = await readmission.recheck(house.gateway, OWNER, webhook.id)
    assert [one.invocation_id for one in few.would_pass] == calls[:1], "behind others that would not pass"
    assert (await refused(readmission.recheck(house.gateway, OWNER, "wh_none"))).code == "not_found"


@pytest.mark.parametrize("secret", [{"generate": True}, "the secret before the rotation"])
async def test_every_call_of_a_burst_that_a_wrong_secret_rejected_is_admitted(
    house: House, secret: Any
) -> None:
    webhook = await house.webhook(authentication={"method": "hmac", "provider": "shopify", "secret": secret})
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
    assert (len(found.would_pass), found.not_kept) == (20, 3), "without the one whose body was not read"
    went = await retention.trim(house.gateway, webhook.id)
    found = await readmission.recheck(house.gateway, OWNER, webhook.id)
    assert went > 0 and (len(found.would_pass), found.not_kept) == (20 - went, 3 + went)


async def test_what_is_admitted_is_started_announced_and_written_down_once(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, (first, second) = await rejected(house, (b'{"n":1}', b'{"n":2}'))
    touched: list[str] = []
    monkeypatch.setattr(house.gateway.runtime.live, "touch", touched.append)
    house.gateway.runtime.due.clear()
    done = await readmission.admit(house.gateway, OWNER, [first])
    (item,) = done.items
    assert (done.admitted, item.admitted, item.reason) == (1, True, "")
    assert item.delivery_key == f"{first}.1"
    assert (touched, house.gateway.runtime.due.is_set()) == ([first], True)
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


async def test_what_was_admitted_is_none_of_too_many_rejected_calls(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    webhook, (older, call) = await rejected(house, (b'{"n":1}', b'{"n":2}'))
    monkeypatch.setattr(retention, "REJECTED_BYTES", 2_000)  # there is room for one of them
    await readmission.admit(house.gateway, OWNER, [call])
    assert await retention.trim(house.gateway, webhook.id) == 0
    assert {one.id for one in await house.history()} == {older, call}


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
    assert [item.reason for item in done.items] == ["", f"it is a duplicate of {one}"]
    body = b'{"id":7,"n":3}'
    heard = await house.call(webhook, body, headers=signed(body))
    assert heard.json == {"status": "duplicate", "invocationId": one}


async def test_why_a_call_is_not_admitted_is_reported(house: House) -> None:
    webhook = await house.webhook(authentication=TOKEN)
    await house.call(webhook)
    await house.call(webhook, b'{"n":1}', headers={"x-api-key": TOKEN["token"]})
    accepted, masked = [one.id for one in await house.history()]

    async def reasons() -> list[str]:
        done = await readmission.admit(house.gateway, OWNER, [accepted, masked])
        assert done.admitted == 0
        return [one.reason for one in done.items]

    assert await reasons() == ["it was not rejected", "its credential was masked and cannot be checked again"]
    await webhooks.switch(house.gateway, OWNER, webhook.id, False)
    assert await reasons() == ["its webhook is disabled and starts nothing"] * 2
    await webhooks.remove(house.gateway, OWNER, webhook.id)
    assert await reasons() == ["its webhook has been deleted"] * 2
    assert (await refused(readmission.admit(house.gateway, OWNER, ["inv_none"]))).code == "not_found"


async def test_a_thousand_are_admitted_at_once_and_no_more(house: House) -> None:
    wrong = await fields_refused(readmission.admit(house.gateway, OWNER, ["inv_none"] * 1_001))
    assert list(wrong) == ["invocationIds"]
    assert (await refused(readmission.admit(house.gateway, OWNER, ["inv_none"] * 1_000))).code == "not_found"


async def test_only_a_call_that_some_settings_would_let_in_is_worth_another_check(house: House) -> None:
    bodies = (b'{"n":1}', b"[1]", b"no json", b'"text"')
    webhook, calls = await rejected(house, bodies)

    async def worth() -> list[bool]:
        return [await readmission.may_pass(house.gateway, OWNER, one) for one in calls]

    assert await worth() == [True, True, False, False]
    await webhooks.change(house.gateway, OWNER, webhook.id, {"authentication": TOKEN})
    assert await worth() == [False] * 4, "what is recorded holds no token"
    await webhooks.change(house.gateway, OWNER, webhook.id, {"authentication": {"method": "none"}})
    assert await worth() == [True, True, False, False]
    assert (await house.call(webhook)).status == 200
    accepted = (await house.history())[0].id
    assert not await readmission.may_pass(house.gateway, OWNER, accepted)
    await webhooks.remove(house.gateway, OWNER, webhook.id)
    assert await worth() == [False] * 4
