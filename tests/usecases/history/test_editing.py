"""A workflow is started with a changed copy of a recorded call: a new invocation, and the old one as it came."""

import base64
import json

import pytest

from postern.core.access.accounts import Actor
from postern.core.problems import Refused
from postern.usecases.deliveries import holds
from postern.usecases.history import editing, history
from postern.usecases.webhooks import webhooks
from support.clock import HeldClock
from support.house import OWNER, House
from support.refusals import fields_refused, refused

BODY = b'{"order": {"number": 1001, "total": 10.00}, "who": "ada"}'
MAPPED = {"fieldOne": "order.number", "fieldTwo": "who"}


async def recorded(house: House, body: bytes = BODY, **settings: object) -> str:
    call = await house.recorded(await house.webhook(**{"fieldMapping": MAPPED, **settings}), body)
    await house.deliver()
    return call


async def test_another_body_goes_to_the_workflow_and_the_call_stays(house: House) -> None:
    call = await recorded(house)
    before = await history.request(house.gateway, OWNER, call)
    assert base64.b64decode(before.body_base64 or "") == BODY
    changed = BODY.decode().replace("1001", "1002").replace('"ada"', '"eve"')
    done = await editing.replay_edited(house.gateway, OWNER, call, body=changed)
    await house.deliver()
    trigger = house.engine.started[done.delivery.key]
    assert trigger.invocation_id == done.invocation_id != call
    assert trigger.payload.decode() == changed
    assert trigger.fields == {"fieldOne": "1002", "fieldTwo": "eve"}
    made = await history.show(house.gateway, OWNER, done.invocation_id)
    assert made.edited is not None and made.edited.invocation_id == made.edited_from == call
    assert made.edited.changed == ["order.number changed", "who changed"] and made.edited.by == "owner"
    assert (made.code, made.status, made.http_status, made.address) == ("edited", "started", None, "")
    assert made.judged_at is None and "made by owner from" in made.trace[0].detail
    assert await history.request(house.gateway, OWNER, call) == before
    assert (await history.show(house.gateway, OWNER, call)).edited_replays == [done.invocation_id]
    assert len(house.engine.started) == 2


async def test_values_are_set_by_hand_over_those_of_the_mapping_or_the_recorded_ones(house: House) -> None:
    call = await recorded(house)
    item = await history.show(house.gateway, OWNER, call)
    await webhooks.change(
        house.gateway, OWNER, item.webhook_id, {"fieldMapping": {"fieldOne": "order.total"}}
    )
    done = await editing.replay_edited(house.gateway, OWNER, call, values={"fieldTwo": "bob"})
    assert done.delivery.fields == {"fieldOne": "10.00", "fieldTwo": "bob"}
    done = await editing.replay_edited(
        house.gateway, OWNER, call, values={"fieldThree": "new"}, fields="recorded"
    )
    assert done.delivery.fields == {"fieldOne": "1001", "fieldTwo": "ada", "fieldThree": "new"}
    made = await history.show(house.gateway, OWNER, done.invocation_id)
    assert made.edited is not None and made.edited.changed == ["fieldThree set by hand"]
    assert made.body == BODY.decode(), "to the byte"


async def test_what_cannot_be_started_is_refused_by_name(house: House) -> None:
    call = await recorded(house)
    wrong: tuple[tuple[str | None, dict[str, str] | None, list[str]], ...] = (
        ("{", None, ["body"]),
        ('"text"', None, ["body"]),
        (None, {"fieldFive": "x"}, ["values.fieldFive"]),
        (None, {"fieldOne": "x" * 70_000}, ["values.fieldOne"]),
        (None, None, []),
        (BODY.decode(), {"fieldOne": "1001"}, []),
    )
    for body, values, fields in wrong:
        asked = editing.replay_edited(house.gateway, OWNER, call, body=body, values=values)
        assert list(await fields_refused(asked)) == fields
    assert len(await house.history()) == 1


async def test_what_was_never_started_a_reader_and_a_disabled_webhook_are_refused(house: House) -> None:
    webhook = await house.webhook(authentication={"method": "token", "token": "a long token"})
    rejected = await house.recorded(webhook)
    with pytest.raises(Refused, match="rejected"):
        await editing.replay_edited(house.gateway, OWNER, rejected, body='{"a": 1}')
    call = await recorded(house)
    refusal = await refused(editing.replay_edited(house.gateway, Actor("reader", "read"), call, body="{}"))
    assert refusal.code == "access_denied"
    item = await history.show(house.gateway, OWNER, call)
    await webhooks.switch(house.gateway, OWNER, item.webhook_id, False)
    with pytest.raises(Refused, match="disabled"):
        await editing.replay_edited(house.gateway, OWNER, call, body="{}")


async def test_a_copy_is_no_call_that_came_in(house: House) -> None:
    """Nothing counts it, nothing takes it for what a sender did, and it can be edited and replayed again."""
    call = await recorded(house)
    done = await editing.replay_edited(house.gateway, OWNER, call, body='{"order": {"number": 7}}')
    webhook_id = (await history.show(house.gateway, OWNER, call)).webhook_id
    assert (await webhooks.show(house.gateway, OWNER, webhook_id)).call_count == 1
    assert [one.id for one in await house.history(code="edited")] == [done.invocation_id]
    assert [one.id for one in await house.history(code="accepted")] == [call]
    again = await history.replay(house.gateway, OWNER, done.invocation_id, "recorded")
    assert again.delivery.fields == {"fieldOne": "7"}
    twice = await editing.replay_edited(
        house.gateway, OWNER, done.invocation_id, body='{"order": {"number": 8}}'
    )
    assert (await history.show(house.gateway, OWNER, twice.invocation_id)).edited_from == done.invocation_id


async def test_a_hold_holds_it_and_the_audit_says_who_made_it(house: House) -> None:
    call = await recorded(house)
    item = await history.show(house.gateway, OWNER, call)
    await holds.hold(house.gateway, OWNER, item.webhook_id)
    done = await editing.replay_edited(house.gateway, OWNER, call, body='{"secret": "not in the audit"}')
    assert done.delivery.state == "held"
    action, subject, changes = await house.noted()
    assert (action, subject) == ("edited invocation replayed", call)
    assert "not in the audit" not in json.dumps(changes)


async def test_what_was_changed_is_described_in_few_words(house: House) -> None:
    call = await recorded(house, b'{"a": 1, "b": 2, "%s": 3}' % (b"k" * 200))

    async def described(body: str, values: dict[str, str] | None = None) -> list[str]:
        done = await editing.replay_edited(house.gateway, OWNER, call, body=body, values=values)
        made = (await history.show(house.gateway, OWNER, done.invocation_id)).edited
        assert made is not None
        return made.changed

    long, both = "k" * 200, ["a changed", "b changed"]
    assert await described(f'{{"a": 7, "b": 7, "{long}": 3}}') == both
    added = ", ".join(f'"n{number}": 0' for number in range(19))
    news = [f"n{number} added" for number in range(19)]
    assert await described(f'{{"a": 7, "b": 2, "{long}": 3, {added}}}') == [both[0], *news]
    assert await described(f'{{"a": 7, "b": 7, "{long}": 3, {added}}}') == [*both, *news[:18], "and 1 more"]
    assert await described('{"a": 1, "b": 2}') == [f"{'k' * 120} removed"]
    assert await described(f'{{"a":1,"b":2,"{long}":3}}') == ["body written differently"]
    by_hand = await described('{"a": 1, "b": 2}', {"fieldFour": "4", "fieldOne": "1"})
    assert by_hand[1:] == ["fieldOne set by hand", "fieldFour set by hand"]


async def test_the_copy_says_how_long_it_is_and_is_due_at_once(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, webhook = HeldClock(house.gateway), await house.webhook()
    call = await house.recorded(webhook, b'{"n":1}', headers={"Content-Length": "7", "X-Length": "7"})
    await house.deliver()
    touched: list[str] = []
    monkeypatch.setattr(house.gateway.runtime.live, "touch", touched.append)
    house.gateway.runtime.engine.due.clear()
    clock.now += 50
    done = await editing.replay_edited(house.gateway, OWNER, call, body='{"n":1001}')
    made = await history.show(house.gateway, OWNER, done.invocation_id)
    lengths = {name: value for name, value in made.headers if name.endswith("length")}
    assert lengths == {"content-length": "10", "x-length": "7"}
    assert (made.body_size, made.received_at) == (10, clock.now)
    assert (made.duration_ms, made.duplicate_of) == (0.0, None)
    assert (made.config_version, made.detail, made.matched) == (webhook.version, "", None)
    assert (touched, house.gateway.runtime.engine.due.is_set()) == ([done.invocation_id], True)


@pytest.mark.parametrize("more", [0, 1])
async def test_a_copy_is_as_large_as_a_call_may_be(
    house: House, monkeypatch: pytest.MonkeyPatch, more: int
) -> None:
    monkeypatch.setattr(editing, "LARGEST_PAYLOAD_LIMIT", 1024**2)
    call = await recorded(house)
    body = '{"n":"%s"}' % ("x" * (1024**2 - 8 + more))
    if more:
        with pytest.raises(Refused, match="at most 1 MiB") as caught:
            await editing.replay_edited(house.gateway, OWNER, call, body=body)
        assert caught.value.code == "payload_too_large"
    else:
        assert (await editing.replay_edited(house.gateway, OWNER, call, body=body)).invocation_id
