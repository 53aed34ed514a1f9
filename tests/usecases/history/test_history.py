"""One recorded call: what is shown of it, what a path would find in it, and starting it again, or why that is refused."""

import pytest

from postern.core.problems import Gone
from postern.identity import time_of
from postern.usecases.access import audit
from postern.usecases.answers import as_plain
from postern.usecases.deliveries import holds
from postern.usecases.history import history, samples
from postern.usecases.history.history import HistoryFilter
from postern.usecases.webhooks import webhooks
from support.clock import HeldClock
from support.house import OWNER, House
from support.refusals import fields_refused, refused


async def why_not(house: House, invocation: str) -> tuple[str, str]:
    refusal = await refused(history.replay(house.gateway, OWNER, invocation))
    return refusal.code, refusal.detail


async def test_how_many_and_since_when_is_reported(house: House) -> None:
    assert await history.oldest(house.gateway, OWNER) is None
    webhook = await house.webhook()
    first = await house.recorded(webhook)
    await house.recorded(webhook)
    assert await history.oldest(house.gateway, OWNER) == time_of(first)
    found = await history.count(house.gateway, OWNER, HistoryFilter())
    assert (found.calls, found.or_more, found.looked_back_to) == (2, False, None)


async def test_a_replay_is_due_at_once_announced_and_written_down(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    webhook = await house.webhook()
    call = await house.recorded(webhook)
    await house.deliver()
    touched: list[str] = []
    monkeypatch.setattr(house.gateway.runtime.live, "touch", touched.append)
    house.gateway.runtime.engine.due.clear()
    done = await history.replay(house.gateway, OWNER, call)
    assert (done.invocation_id, done.delivery.key, done.delivery.state) == (call, f"{call}.2", "queued")
    assert (touched, house.gateway.runtime.engine.due.is_set()) == ([call], True)
    (note,) = (await audit.listing(house.gateway, OWNER, subject=call)).items
    assert note.action == "invocation replayed"
    await holds.hold(house.gateway, OWNER, webhook.id)
    assert (await history.replay(house.gateway, OWNER, call)).delivery.state == "held"


async def test_what_started_nothing_is_reported_with_what_to_do_instead(house: House) -> None:
    webhook = await house.webhook(duplicateProtection={"enabled": True})
    first = await house.recorded(webhook)
    await house.call(webhook)
    assert await why_not(house, (await house.history())[0].id) == (
        "conflict",
        f"this call is a duplicate and started nothing; replay the first one, {first}",
    )
    code, detail = await why_not(house, await house.recorded(webhook, b"nonsense"))
    assert code == "conflict" and "rejected (malformed_json)" in detail and "admit it" in detail
    assert await why_not(house, "inv_nobody") == (
        "not_found",
        "there is no invocation with this id, or retention has taken it",
    )
    shop = await house.webhook(
        authentication={"method": "hmac", "provider": "woocommerce", "secret": "a secret"}
    )
    await house.call(shop, b"webhook_id=1", headers={"Content-Type": "application/x-www-form-urlencoded"})
    (greeting,) = await house.history(webhook_id=shop.id)
    assert await why_not(house, greeting.id) == (
        "conflict",
        "this call was a set-up handshake, which starts nothing",
    )


async def test_what_cannot_be_started_again_says_why(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    webhook = await house.webhook()
    call = await house.recorded(webhook)
    await house.deliver()

    async def taken(*_: object) -> None:
        raise Gone

    with monkeypatch.context() as patched:
        patched.setattr(house.gateway.store.emissions, "replay", taken)
        assert await why_not(house, call) == ("not_found", "retention has just deleted this invocation")
    assert (await house.gateway.store.retention.strip([call]))[0] == 1
    assert await why_not(house, call) == ("conflict", "the call's body is no longer kept, or cannot be read")
    await webhooks.switch(house.gateway, OWNER, webhook.id, False)
    assert "disabled" in (await why_not(house, call))[1]
    await webhooks.remove(house.gateway, OWNER, webhook.id)
    assert await why_not(house, call) == ("conflict", "its webhook has been deleted")


async def test_an_armed_recording_keeps_a_replay_and_one_that_is_over_does_not(house: House) -> None:
    clock = HeldClock(house.gateway)
    webhook = await house.webhook(fieldMapping={"fieldOne": "n"})
    call = await house.recorded(webhook, b'{"n":1}')
    await samples.arm(house.gateway, OWNER, webhook.id, 60)
    clock.now += 60
    await history.replay(house.gateway, OWNER, call)
    assert (await samples.sample(house.gateway, OWNER, webhook.id)).event is None
    await samples.arm(house.gateway, OWNER, webhook.id, 60)
    await history.replay(house.gateway, OWNER, call)
    kept = await samples.sample(house.gateway, OWNER, webhook.id)
    assert kept.event is not None
    assert (kept.event["fieldOne"], kept.event["payload"], kept.invocation_id) == ("1", {"n": 1}, call)


async def test_what_paths_would_find_is_reported_by_field(house: House) -> None:
    call = await house.recorded(await house.webhook(), b'{"a":{"b":[1,"x"]},"n":null}')
    found = await history.preview(
        house.gateway, OWNER, call, {"fieldOne": "a.b[1]", "fieldTwo": "a.c", "fieldThree": "a"}
    )
    assert as_plain(found) == {"fieldOne": "x", "fieldTwo": None, "fieldThree": '{"b":[1,"x"]}'}
    wrong = await fields_refused(
        history.preview(house.gateway, OWNER, call, {"fieldOne": "a", "fieldTwo": "$.a"})
    )
    assert list(wrong) == ["fieldMapping.fieldTwo"]
    wrong = await fields_refused(history.preview(house.gateway, OWNER, call, {"fieldOne": "header:ce-type"}))
    assert wrong == {"fieldMapping.fieldOne": "a field is taken out of the body; no header is mapped"}
    rejected = await house.recorded(await house.webhook(), b"not json")
    nothing = await history.preview(house.gateway, OWNER, rejected, {"fieldOne": "a"})
    assert as_plain(nothing) == {"fieldOne": None}


async def test_failed_calls_are_grouped_however_many_others_came_since(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "MOST_FAILURES", 3)
    webhook, house.engine.refuses = await house.webhook(), "ERP said 503"
    failed = [await house.recorded(webhook) for _ in range(2)]
    await house.deliver()
    house.engine.refuses = ""
    for _ in range(4):
        await house.recorded(webhook)
    await house.deliver()
    found = await history.failures(house.gateway, OWNER, HistoryFilter())
    assert [(one.count, found.or_more) for one in found.items] == [(len(failed), False)]


async def test_a_payload_is_shown_as_it_was_written_where_anybody_can_read_it(house: House) -> None:
    webhook = await house.webhook()
    for body, is_shown in (
        (b'{"n":1.000000000000000000001}', True),
        (b'{"n":"\\ud83d\\ude00"}', True),
        (b'{"n":1e999}', False),
        (b'{"n":%s}' % (b"1" * 5_000), False),
        (b'{"n":1234567890123456789}', True),
    ):
        payload = (await history.show(house.gateway, OWNER, await house.recorded(webhook, body))).payload
        assert (None if payload is None else bytes(payload)) == (body if is_shown else None)
