"""A call that the conditions hold back: recorded and answered like an accepted one, and started by nobody but a person."""

import asyncio
from typing import Any

import pytest

from postern.core.history.invocation import HistoryFilter
from postern.core.history.volume import Volume
from postern.core.problems import Refused
from postern.usecases.calls import readmission
from postern.usecases.deliveries import replays
from postern.usecases.deliveries.replays import Replayer
from postern.usecases.history import editing, history
from postern.usecases.history.views.calls import Replayed
from postern.usecases.webhooks import as_code, webhooks
from postern.usecases.webhooks.views import Webhook
from support.house import OWNER, House

PAID: dict[str, Any] = {"of": "paid", "is": "oneOf", "values": [True]}


async def only_paid(house: House, **settings: Any) -> Webhook:
    return await house.webhook(conditions=[PAID], fieldMapping={"fieldOne": "order"}, **settings)


async def test_it_is_answered_like_an_accepted_one_and_starts_nothing(house: House) -> None:
    webhook = await only_paid(house)
    answers = [await house.call(webhook, body) for body in (b'{"paid":true}', b'{"paid":false,"order":7}')]
    await house.deliver()
    assert [one.status for one in answers] == [200, 200]
    assert [one.json["status"] for one in answers] == ["accepted", "accepted"]
    assert len(house.engine.started) == 1
    filtered = (await house.history(status="filtered"))[0]
    assert filtered.id == answers[1].json["invocationId"] and filtered.fields == {"fieldOne": "7"}
    assert (filtered.code, filtered.http_status) == ("filtered", 200)
    assert filtered.detail == "row 1: paid is false, which is not one of true"
    shown = await history.show(house.gateway, OWNER, filtered.id)
    assert [one.step for one in shown.trace if not one.ok] == ["conditions"]
    for wanted in (
        {"code": "filtered"},
        {"webhook_id": webhook.id, "status": "filtered"},
        {"search": "not one of"},
    ):
        assert [one.id for one in await house.history(**wanted)] == [filtered.id]
    minute = int(house.gateway.clock() // 60)
    volumes: dict[int, Volume] = await house.gateway.store.volumes.buckets(
        webhook.id, minute - 2, minute + 1, 1
    )
    counted = {
        name: sum(one.outcomes()[name] for one in volumes.values()) for name in ("accepted", "filtered")
    }
    assert counted == {"accepted": 1, "filtered": 1}


async def test_its_own_answer_and_one_that_would_wait_come_at_once(house: House) -> None:
    own = await only_paid(house, acceptedAnswer={"status": 202, "body": "taken"})
    answer = await house.call(own)
    assert (answer.status, answer.body) == (202, b"taken")
    waits = await only_paid(house, synchronousResponse={"enabled": True})
    answer = await house.call(waits)
    assert (answer.status, answer.json["status"]) == (200, "accepted")


async def test_it_claims_no_key_so_the_next_try_starts_after_the_rows_were_changed(house: House) -> None:
    webhook = await only_paid(house, duplicateProtection={"enabled": True})
    await house.call(webhook, b'{"paid":false}')
    await webhooks.change(house.gateway, OWNER, webhook.id, {"conditions": []})
    await house.call(webhook, b'{"paid":false}')
    await house.call(webhook, b'{"paid":false}')
    assert sorted(one.status for one in await house.history()) == ["accepted", "duplicate", "filtered"]


async def test_the_elements_of_an_array_are_held_back_one_by_one(house: House) -> None:
    webhook = await only_paid(house, arrays="each")
    answer = await house.call(webhook, b'[7,{"paid":false},{"paid":true}]')
    assert answer.json["invocationId"] in [one.id for one in await house.history(status="accepted")]
    answer = await house.call(webhook, b'[7,{"paid":false}]')
    assert answer.json["invocationId"] in [one.id for one in await house.history(status="filtered")]
    assert sorted(one.status for one in await house.history()) == [
        *("accepted", "filtered", "filtered", "rejected", "rejected")
    ]


async def test_a_person_starts_it_once_and_a_page_that_is_behind_does_not(house: House) -> None:
    webhook = await only_paid(house)
    held_back = await house.recorded(webhook, b'{"order":"A7"}')
    made = await history.replay(house.gateway, OWNER, held_back, emission=1)
    with pytest.raises(Refused, match="this call was started meanwhile"):
        await history.replay(house.gateway, OWNER, held_back, emission=1)
    await house.deliver()
    assert house.engine.started[made.delivery.key].fields == {"fieldOne": "A7"}
    assert (await house.story(held_back)).deliveries[0].asked_by == OWNER.name
    assert [one.status for one in await house.history()] == ["started"] and not await house.history(
        status="filtered"
    )
    other = await house.recorded(webhook, b'{"order":"A8"}')
    edited = await editing.replay_edited(
        house.gateway, OWNER, other, values={"fieldOne": "A9"}, fields="recorded"
    )
    await house.deliver()
    assert house.engine.started[edited.delivery.key].fields == {"fieldOne": "A9"}


async def test_a_program_that_asks_twice_at_once_starts_it_once(house: House) -> None:
    webhook = await only_paid(house)
    held_back = await house.recorded(webhook, b'{"order":"A7"}')
    asked = (history.replay(house.gateway, OWNER, held_back) for _ in range(2))
    answers = await asyncio.gather(*asked, return_exceptions=True)
    (made,) = (one for one in answers if isinstance(one, Replayed))
    (refused,) = (one for one in answers if isinstance(one, Refused))
    assert refused.detail == "this call was started meanwhile"
    await house.deliver()
    assert list(house.engine.started) == [made.delivery.key]
    again = await history.replay(house.gateway, OWNER, held_back)
    assert (made.delivery.emission, again.delivery.emission) == (1, 2), (
        "later, it is another start on purpose"
    )


async def test_many_are_started_where_they_are_asked_for_and_not_among_others(house: House) -> None:
    webhook = await only_paid(house)
    for number in range(3):
        await house.call(webhook, b'{"order":%d}' % number)
    await house.call(webhook, b'{"paid":true}')
    await house.deliver()

    async def planned(**wanted: Any) -> Any:
        return await replays.plan(house.gateway, OWNER, HistoryFilter(webhook_id=webhook.id, **wanted))

    every = await planned()
    assert every.count == 1, "a plan of all calls starts nothing that was held back"
    plans = [await planned(status="filtered"), await planned(code="filtered")]
    assert [one.count for one in plans] == [3, 3]
    for one in plans:
        await replays.begin(house.gateway, OWNER, one.id)
        while await Replayer(house.gateway).round():
            pass
    await house.deliver()
    assert sorted(one.fields.get("fieldOne", "") for one in house.engine.started.values()) == [
        "",
        "0",
        "1",
        "2",
    ]


async def test_a_rejected_call_whose_rows_do_not_hold_is_not_admitted(house: House) -> None:
    webhook = await only_paid(house)
    await webhooks.switch(house.gateway, OWNER, webhook.id, enabled=False)
    rejected = [await house.recorded(webhook, body) for body in (b'{"paid":true}', b"{}")]
    await webhooks.switch(house.gateway, OWNER, webhook.id, enabled=True)
    found = await readmission.recheck(house.gateway, OWNER, webhook.id)
    assert (found.calls, found.cannot_be_admitted) == (1, 1)
    assert found.cannot_because[0].reason == "the conditions of what starts do not hold"
    done = await readmission.admit(house.gateway, OWNER, rejected)
    assert done.admitted == 1
    held_back = await house.recorded(webhook, b"{}")
    standing = await readmission.standing(house.gateway, OWNER, held_back)
    assert standing == ("cannot_be_admitted", "it was filtered, not rejected: a replay starts it")


async def test_every_wrong_row_is_named_at_once(house: House) -> None:
    wrong = [
        {"of": "$.a", "is": "oneOf", "values": ["x"]},
        {"of": "header:ä", "is": "like", "values": ["x"]},
        {"of": "a[*][*][*][*]", "is": "greater", "values": ["many"]},
        {"of": "a..b", "is": "there", "values": ["x"]},
        {"of": "", "is": "oneOf", "values": []},
        {"of": "a", "is": "oneOf", "values": ["x" * 501], "more": 1},
        {"is": "there"},
    ]
    with pytest.raises(Refused) as refused:
        await house.webhook(conditions=wrong)
    said = {one.field.removeprefix("conditions."): one.message for one in refused.value.errors}
    assert said.keys() == {
        *(
            "0.of",
            "1.of",
            "1.is",
            "2.of",
            "2.values",
            "3.of",
            "3.values",
            "4.of",
            "4.values",
            "5.more",
            "6.of",
        ),
        "5.values.0",
    }, said
    assert said["2.values"] == "write one number, like 100 or 9.50" and "oneOf" in said["1.is"]
    with pytest.raises(Refused) as refused:
        await house.webhook(conditions=[PAID] * 21)
    assert [one.field for one in refused.value.errors] == ["conditions"]


async def test_the_rows_travel_through_export_and_apply(house: House) -> None:
    rows = [PAID, {"of": "total", "is": "greater", "values": [9.5], "ignoreCase": True}]
    webhook = await house.webhook(conditions=rows, filteredRetentionDays=1)
    (document,) = (await as_code.export(house.gateway, OWNER)).webhooks
    assert document["conditions"] == [
        {"of": "paid", "is": "oneOf", "values": ["true"]},
        {"of": "total", "is": "greater", "values": ["9.5"], "ignoreCase": True},
    ]
    assert document["filteredRetentionDays"] == 1
    assert webhook.conditions[0].values == ["true"]
