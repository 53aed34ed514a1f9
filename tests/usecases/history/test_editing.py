"""A workflow is started with a changed copy of a recorded call: a new invocation, and the old one as it came."""

import base64
import json

import pytest

from postern.core.access.accounts import Actor
from postern.core.problems import Refused
from postern.usecases.access import audit
from postern.usecases.history import editing, history
from postern.usecases.webhooks import webhooks
from support.house import OWNER, House

BODY = b'{"order": {"number": 1001, "total": 10.00}, "who": "ada"}'
MAPPED = {"fieldOne": "order.number", "fieldTwo": "who"}


async def recorded(house: House, body: bytes = BODY, **settings: object) -> str:
    webhook = await house.webhook(**{"fieldMapping": MAPPED, **settings})
    answer = await house.call(webhook, body)
    await house.deliver()
    return str(answer.json["invocationId"])


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


@pytest.mark.parametrize(
    ("body", "values", "field"),
    [
        ("{", None, "body"),
        ('"text"', None, "body"),
        (None, {"fieldFive": "x"}, "values.fieldFive"),
        (None, {"fieldOne": "x" * 70_000}, "values.fieldOne"),
        (None, None, ""),
        (BODY.decode(), {"fieldOne": "1001"}, ""),
    ],
)
async def test_what_cannot_be_started_is_refused_by_name(
    house: House, body: str | None, values: dict[str, str] | None, field: str
) -> None:
    call = await recorded(house)
    with pytest.raises(Refused) as caught:
        await editing.replay_edited(house.gateway, OWNER, call, body=body, values=values)
    assert caught.value.code == "invalid_request"
    assert [error.field for error in caught.value.errors] == ([field] if field else [])
    assert len(await house.history()) == 1


async def test_what_was_never_started_a_reader_and_a_disabled_webhook_are_refused(house: House) -> None:
    webhook = await house.webhook(authentication={"method": "token", "token": "a long token"})
    rejected = (await house.call(webhook)).json["invocationId"]
    with pytest.raises(Refused, match="rejected"):
        await editing.replay_edited(house.gateway, OWNER, rejected, body='{"a": 1}')
    call = await recorded(house)
    with pytest.raises(Refused) as caught:
        await editing.replay_edited(house.gateway, Actor("reader", "read"), call, body="{}")
    assert caught.value.code == "access_denied"
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
    from postern.usecases.deliveries import holds

    await holds.hold(house.gateway, OWNER, item.webhook_id)
    done = await editing.replay_edited(house.gateway, OWNER, call, body='{"secret": "not in the audit"}')
    assert done.delivery.state == "held"
    note = (await audit.listing(house.gateway, OWNER, 1)).items[0]
    assert (note.action, note.subject) == ("edited invocation replayed", call)
    assert "not in the audit" not in json.dumps(note.changes)


async def test_what_was_changed_is_described_in_few_words(house: House) -> None:
    call = await recorded(house, b'{"a": 1, "b": 2, "%s": 3}' % (b"k" * 200))

    async def described(body: str, values: dict[str, str] | None = None) -> list[str]:
        done = await editing.replay_edited(house.gateway, OWNER, call, body=body, values=values)
        made = (await history.show(house.gateway, OWNER, done.invocation_id)).edited
        assert made is not None
        return made.changed

    long = "k" * 200
    assert await described(f'{{"a": 7, "b": 7, "{long}": 3}}') == ["a changed", "b changed"]
    added = ", ".join(f'"n{number}": 0' for number in range(19))
    twenty = [f"n{number} added" for number in range(19)]
    assert await described(f'{{"a": 7, "b": 2, "{long}": 3, {added}}}') == ["a changed", *twenty]
    assert await described(f'{{"a": 7, "b": 7, "{long}": 3, {added}}}') == [
        "a changed",
        "b changed",
        *twenty[:18],
        "and 1 more",
    ]
    assert await described('{"a": 1, "b": 2}') == [f"{'k' * 120} removed"]
    assert await described(f'{{"a":1,"b":2,"{long}":3}}') == ["body written differently"]
    by_hand = await described('{"a": 1, "b": 2}', {"fieldFour": "4", "fieldOne": "1"})
    assert by_hand[1:] == ["fieldOne set by hand", "fieldFour set by hand"]


async def test_the_copy_says_how_long_it_is_and_is_due_at_once(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = float(int(house.gateway.clock()))
    house.gateway.clock = lambda: now
    webhook = await house.webhook()
    call = (await house.call(webhook, b'{"n":1}', headers={"Content-Length": "7", "X-Length": "7"})).json[
        "invocationId"
    ]
    await house.deliver()
    touched: list[str] = []
    monkeypatch.setattr(house.gateway.runtime.live, "touch", touched.append)
    house.gateway.runtime.due.clear()
    now += 50
    done = await editing.replay_edited(house.gateway, OWNER, call, body='{"n":1001}')
    made = await history.show(house.gateway, OWNER, done.invocation_id)
    lengths = {name: value for name, value in made.headers if name.endswith("length")}
    assert lengths == {"content-length": "10", "x-length": "7"}
    assert (made.body_size, made.received_at, made.duration_ms, made.duplicate_of) == (10, now, 0.0, None)
    assert (made.config_version, made.detail, made.matched) == (webhook.version, "", None)
    assert (touched, house.gateway.runtime.due.is_set()) == ([done.invocation_id], True)


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
