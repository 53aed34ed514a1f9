import asyncio

import pytest

from postern.core.history.invocation import HistoryFilter
from postern.core.history.sample import variables
from postern.core.problems import Refused
from postern.usecases.access import audit
from postern.usecases.history import fixtures, history, samples
from postern.usecases.webhooks import webhooks
from support.clock import HeldClock, later
from support.desk import ACTOR, Desk, on_both
from support.refusals import fields_refused, refused

MAPPED = {"fieldOne": "order.number", "fieldTwo": "order.customer"}
ORDER = {"order": {"number": 1001, "customer": {"first name": "Ada"}, "lines": [{"sku": "a"}, {"sku": "b"}]}}


async def test_the_next_accepted_call_after_arming_is_kept_as_the_workflow_will_see_it(desk: Desk) -> None:
    webhook = await desk.webhook(fieldMapping=MAPPED)
    await desk.accepted(webhook, {"order": {"number": 1}})
    await samples.arm(desk.gateway, ACTOR, webhook)
    invocation = await desk.accepted(webhook, ORDER)
    kept = await samples.sample(desk.gateway, ACTOR, webhook)
    assert kept.event == {
        "webhookId": webhook,
        "fieldOne": "1001",
        "fieldTwo": '{"first name":"Ada"}',
        "fieldThree": "",
        "fieldFour": "",
        "invocationId": invocation,
        "payload": ORDER,
    }


@on_both
async def test_the_first_of_many_at_once_is_taken_and_no_other(desk: Desk) -> None:
    webhook = await desk.webhook()
    await samples.arm(desk.gateway, ACTOR, webhook)
    answers = await asyncio.gather(*(desk.accepted(webhook, {"n": n}) for n in range(20)))
    kept = await samples.sample(desk.gateway, ACTOR, webhook)
    assert kept.invocation_id == answers[0]
    assert kept.recording_until is None
    again = await desk.accepted(webhook, {"n": 99})
    assert (await samples.sample(desk.gateway, ACTOR, webhook)).invocation_id != again


async def test_rejected_calls_and_duplicates_are_no_events(desk: Desk) -> None:
    webhook = await desk.webhook(duplicateProtection={"enabled": True})
    await desk.accepted(webhook, {"n": 1})
    await samples.arm(desk.gateway, ACTOR, webhook)
    await desk.call(webhook, b"not json")
    await desk.call(webhook, {"n": 1})
    kept = await samples.sample(desk.gateway, ACTOR, webhook)
    assert kept.event is None
    assert kept.recording_until is not None
    await desk.accepted(webhook, {"n": 2})
    event = (await samples.sample(desk.gateway, ACTOR, webhook)).event
    assert event is not None and event["payload"] == {"n": 2}, "they have ended no waiting"


@on_both
async def test_recording_ends_by_itself(desk: Desk) -> None:
    webhook = await desk.webhook()
    await samples.arm(desk.gateway, ACTOR, webhook, seconds=60)
    later(desk.gateway, 61)
    served = desk.gateway.runtime.directory.by_id(webhook)
    assert served is not None
    # As a process thinks that does not know yet.
    for until in (served.recording_until, desk.gateway.clock() + 3600):
        served.recording_until = until
        await desk.accepted(webhook, {"n": 1})
        assert (await samples.sample(desk.gateway, ACTOR, webhook)).event is None


@on_both
async def test_all_webhooks_can_be_armed_and_disarmed_at_once(desk: Desk) -> None:
    first, second = await desk.webhook("one"), await desk.webhook("two")
    assert (await samples.arm(desk.gateway, ACTOR)).webhooks == 2
    await desk.accepted(first, {"n": 1})
    assert (await samples.sample(desk.gateway, ACTOR, first)).event["payload"] == {"n": 1}
    assert (await webhooks.show(desk.gateway, ACTOR, second)).recording_until is not None
    await samples.disarm(desk.gateway, ACTOR)
    await desk.accepted(second, {"n": 2})
    assert (await samples.sample(desk.gateway, ACTOR, second)).event is None


async def test_a_workflow_is_begun_from_the_sample_or_the_newest_call(desk: Desk) -> None:
    webhook = await desk.webhook(fieldMapping=MAPPED)
    with pytest.raises(Refused, match="no accepted call of this webhook is kept"):
        await samples.new_workflow(desk.gateway, ACTOR, "greet", webhook)
    await desk.accepted(webhook, {"newest": {"call": 1}})
    assert "newest" in await samples.new_workflow(desk.gateway, ACTOR, "greet", webhook)
    await samples.arm(desk.gateway, ACTOR, webhook)
    await desk.accepted(webhook, ORDER)
    begun = await samples.new_workflow(desk.gateway, ACTOR, "greet", webhook)
    assert webhook in begun and "newest" not in begun


async def test_who_forgets_while_it_is_armed_disarms_it(desk: Desk) -> None:
    webhook = await desk.webhook()
    await samples.arm(desk.gateway, ACTOR, webhook)
    await samples.forget(desk.gateway, ACTOR, webhook)
    await desk.accepted(webhook, {"n": 1})
    found = await samples.sample(desk.gateway, ACTOR, webhook)
    assert (found.event, found.recording_until) == (None, None)


def test_every_variable_says_what_to_write() -> None:
    event = {
        "webhookId": "wh_1",
        "fieldOne": '{"a b":[{"c":1.5}]}',
        "invocationId": "inv_1",
        "payload": {"x.y": {"z": None}},
    }
    found = {variable.path: variable for variable in variables(event)}
    assert list(found)[:6] == ["webhookId", "fieldOne", "fieldTwo", "fieldThree", "fieldFour", "invocationId"]
    assert found["fieldOne"].expressions == {
        "python": 'event["fieldOne"]',
        "n8n": "{{ $json.body.fieldOne }}",
        "nodeRed": "msg.payload.fieldOne",
        "liquid": "{{ fieldOne }}",
    }
    inner = found["fieldOne.a b[0].c"]
    assert (inner.type, inner.example) == ("number", 1.5)
    assert inner.expressions == {
        "python": 'json.loads(event["fieldOne"])["a b"][0]["c"]',
        "n8n": '{{ JSON.parse($json.body.fieldOne)["a b"][0].c }}',
        "nodeRed": 'JSON.parse(msg.payload.fieldOne)["a b"][0].c',
    }
    assert found["payload.x\\.y.z"].expressions["python"] == 'event["payload"]["x.y"]["z"]'
    assert found["payload.x\\.y.z"].expressions["liquid"] == '{{ payload["x.y"].z }}'


@pytest.mark.parametrize("number", [b"1e999", b"-1e999", b"1" * 5_000], ids=["large", "small", "long"])
async def test_an_event_with_a_number_beyond_any_is_kept_and_shown_as_unreadable(
    desk: Desk, number: bytes
) -> None:
    webhook = await desk.webhook()
    await samples.arm(desk.gateway, ACTOR, webhook)
    call = await desk.accepted(webhook, b'{"amount":{"value":%s}}' % number)
    kept = await samples.sample(desk.gateway, ACTOR, webhook)
    assert (kept.event, kept.variables, kept.invocation_id) == (None, [], call)
    assert kept.recorded_at is not None
    with pytest.raises(Refused, match="the recorded event holds a number that is too large to be read"):
        await samples.new_workflow(desk.gateway, ACTOR, "greet", webhook)
    for asked in (samples.workflow_of_call, fixtures.fixture):
        with pytest.raises(Refused, match="its payload holds a number that is too large to be read"):
            await asked(desk.gateway, ACTOR, call)


async def test_how_long_a_recording_waits_is_one_second_to_a_day_and_ten_minutes_by_default(
    desk: Desk,
) -> None:
    now, webhook = HeldClock(desk.gateway).now, await desk.webhook()
    armed = await samples.arm(desk.gateway, ACTOR, webhook)
    assert (armed.webhooks, armed.recording_until) == (1, now + 600)
    for seconds in (1, 86_400):
        assert (await samples.arm(desk.gateway, ACTOR, webhook, seconds)).recording_until == now + seconds
    for seconds in (0.9, 86_401):
        assert list(await fields_refused(samples.arm(desk.gateway, ACTOR, webhook, seconds))) == ["seconds"]
    done = await samples.disarm(desk.gateway, ACTOR, webhook)
    assert (done.webhooks, done.recording_until) == (1, None)
    assert (await refused(samples.arm(desk.gateway, ACTOR, "wh_none"))).code == "not_found"
    noted = (await audit.listing(desk.gateway, ACTOR, subject=webhook)).items
    assert [one.action for one in noted][:4] == ["recording disarmed", *["recording armed"] * 3]
    await samples.arm(desk.gateway, ACTOR)
    await samples.disarm(desk.gateway, ACTOR)
    noted = (await audit.listing(desk.gateway, ACTOR, subject="every webhook")).items
    assert [one.action for one in noted] == ["recording disarmed", "recording armed"]


async def test_what_is_armed_and_recorded_is_reported_with_when(desk: Desk) -> None:
    clock, webhook = HeldClock(desk.gateway), await desk.webhook()
    empty = await samples.sample(desk.gateway, ACTOR, webhook)
    assert (empty.webhook_id, empty.recording_until, empty.variables) == (webhook, None, [])
    assert (empty.event, empty.recorded_at, empty.invocation_id) == (None, None, None)
    with pytest.raises(Refused, match="nothing has been recorded for this webhook"):
        await samples.forget(desk.gateway, ACTOR, webhook)
    await samples.arm(desk.gateway, ACTOR, webhook, 60)
    clock.now += 60
    assert (await samples.sample(desk.gateway, ACTOR, webhook)).recording_until is None, "it is over"
    await samples.arm(desk.gateway, ACTOR, webhook, 60)
    call = await desk.accepted(webhook, {"n": 1})
    kept = await samples.sample(desk.gateway, ACTOR, webhook)
    assert (kept.invocation_id, kept.recorded_at, kept.recording_until) == (call, clock.now, None)
    assert [one.path for one in kept.variables][-1] == "payload.n"
    for asked in (samples.sample, samples.forget, samples.disarm):
        assert (await refused(asked(desk.gateway, ACTOR, "wh_none"))).code == "not_found"


async def test_the_file_of_a_call_has_what_the_mapping_finds_now(desk: Desk) -> None:
    webhook = await desk.webhook("My orders", fieldMapping={"fieldOne": "n"})
    call = await desk.accepted(webhook, {"n": 1001, "m": 1002})
    name, source = await samples.workflow_of_call(desk.gateway, ACTOR, call)
    assert (name, 'event["fieldOne"]' in source, webhook in source) == ("my_orders.py", True, True)
    await webhooks.change(desk.gateway, ACTOR, webhook, {"fieldMapping": {"fieldOne": "x", "fieldTwo": "m"}})
    assert 'event["fieldTwo"]' in (await samples.workflow_of_call(desk.gateway, ACTOR, call))[1]
    await webhooks.remove(desk.gateway, ACTOR, webhook)
    name, source = await samples.workflow_of_call(desk.gateway, ACTOR, call)
    assert (name, 'event["fieldOne"]' in source) == ("my_workflow.py", True), "as it was started"
    other = await desk.webhook()
    await desk.call(other, b"not json")
    (rejected, *_) = (await history.listing(desk.gateway, ACTOR, HistoryFilter(other))).items
    with pytest.raises(Refused, match="started nothing"):
        await samples.workflow_of_call(desk.gateway, ACTOR, rejected.id)
