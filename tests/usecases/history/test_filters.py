import pytest
from sqlalchemy import Connection, event

from postern.core.history.invocation import AnswerHeard, HistoryFilter
from postern.core.moment import moment
from postern.identity import time_of
from postern.stores.history import filtering, looking, reading
from postern.usecases.deliveries import holds, replays
from postern.usecases.history import history
from postern.usecases.history.filters import filter_of
from support.desk import ACTOR, Desk, on_both
from support.house import OWNER, House
from support.refusals import refused
from usecases.history.test_findable import all_findable


@on_both
async def test_one_invocations_replay_does_not_hide_the_others_from_a_status_filter(desk: Desk) -> None:
    webhook = await desk.webhook()
    plain, replayed = await desk.accepted(webhook, {"n": 1}), await desk.accepted(webhook, {"n": 2})
    await history.replay(desk.gateway, ACTOR, replayed)
    found = await history.listing(desk.gateway, ACTOR, HistoryFilter(status="accepted"))
    assert [one.id for one in found.items] == [replayed, plain]


@pytest.mark.parametrize(
    ("text", "meant"),
    [("45s", 1e6 - 45), ("30m", 1e6 - 1800), ("1h", 1e6 - 3600), ("2d", 1e6 - 172_800), ("1e3", None), ("12d", None),
     ("1w", None), ("-1h", None), ("1.5h", None), ("1h ", None), ("١h", None), ("9" * 40, None), ("12.5", 12.5), ("0", 0),
     ("1970-01-02", 86_400), ("1970-01-02T00:00:00+01:00", 82_800), ("9999-12-31T23:59:59-01:00", None),
     ("1970-01-02T03:04:05Z", 97_445), ("9999-12-31T23:59:59Z", 253402300799), ("253402300800", None), ("9" * 400, None),
     ("1969-12-31", None), ("1970-13-01", None), ("1.2.3", None), ("-1", None), ("yesterday", None)],
)  # fmt: skip
def test_a_time_may_be_said_by_how_long_ago_it_was(text: str, meant: float | None) -> None:
    if meant is not None:
        assert moment(text, 1e6) == meant
    else:
        with pytest.raises(ValueError, match="write a time like"):
            moment(text, 1e6)


@pytest.mark.parametrize(
    ("wanted", "index"),
    [
        (HistoryFilter(status="rejected"), "invocations_apart"),
        (HistoryFilter(status="duplicate", webhook_id="wh_1"), "invocations_apart_of_webhook"),
        (HistoryFilter(code="signature_mismatch", webhook_id="wh_1"), "invocations_apart_of_webhook"),
        (HistoryFilter(status="failed"), "deliveries_apart"),
        (HistoryFilter(status="waiting"), "deliveries_apart"),
    ],
)
async def test_filtering_for_the_few_costs_what_they_are(
    desk: Desk, wanted: HistoryFilter, index: str
) -> None:
    plans: list[str] = []

    def explain(
        connection: Connection, cursor: object, statement: str, parameters: tuple[object, ...], *_: object
    ) -> None:
        if "ORDER BY invocations.id DESC" in statement and not statement.startswith("EXPLAIN"):
            plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
            plans.extend(str(row[3]) for row in plan)

    event.listen(desk.store.database.readers, "before_cursor_execute", explain)
    await history.listing(desk.gateway, ACTOR, wanted)
    assert any(f"INDEX {index} " in step for step in plans), plans
    # An index of those that wait, or were not accepted, holds few.
    few = ("INDEX invocations_apart", "INDEX deliveries_due")
    whole = [step for step in plans if step.startswith("SCAN") and not any(one in step for one in few)]
    assert not whole, plans


async def test_calls_are_counted_as_far_as_that_is_cheap(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    webhook = await desk.webhook()
    ids = await desk.numbered(webhook, 5)
    count = await history.count(desk.gateway, ACTOR, HistoryFilter(webhook_id=webhook))
    assert (count.calls, count.or_more, count.looked_back_to) == (5, False, None)
    monkeypatch.setattr(reading, "MOST_COUNTED", 4)
    count = await history.count(desk.gateway, ACTOR, HistoryFilter())
    assert (count.calls, count.or_more, count.looked_back_to) == (4, True, None)
    monkeypatch.setattr(looking, "LONGEST_LOOK", 3)
    count = await history.count(desk.gateway, ACTOR, HistoryFilter(search="4"))
    assert (count.calls, count.or_more) == (1, True)
    assert count.looked_back_to == time_of(ids[2]), "where no index helps, the newest alone"


async def test_a_group_finds_the_calls_in_each_of_its_statuses(house: House) -> None:
    open_webhook = await house.webhook()
    started = await house.recorded(open_webhook)
    await house.deliver()
    waiting = await house.recorded(open_webhook)
    on_hold = await house.webhook()
    await holds.hold(house.gateway, OWNER, on_hold.id)
    held = await house.recorded(on_hold)
    assert await house.found(status="waiting") == [held, waiting]
    assert await house.found(status="delivered") == [started]


async def test_a_header_finds_its_calls_by_name_value_and_beginning(house: House) -> None:
    webhook = await house.webhook()
    paid = await house.recorded(webhook, headers={"X-Topic": "orders/paid"})
    made = await house.recorded(webhook, headers={"X-Topic": 'orders/"made"'})
    other = await house.recorded(webhook, headers={"X-Other": '["x-topic","orders/paid"]'})
    assert await house.found(header="x-topic") == [made, paid]
    assert await house.found(header="X-Topic = orders/paid") == [paid], (
        "no other header's value looks like it"
    )
    assert await house.found(header="x-topic=orders/*") == [made, paid]
    assert await house.found(header='x-topic=orders/"made"') == [made]
    assert await house.found(header="x-topic=orders") == []
    assert await house.found(header="x-other") == [other]


async def test_a_kind_of_answer_ends_before_the_next_one(house: House) -> None:
    webhook = await house.webhook()
    rejected, failed = [await house.recorded(webhook, body) for body in (b"not JSON", b"{}")]
    now = house.gateway.clock()
    await house.gateway.store.endings.note([AnswerHeard(failed, 500, now, True)], {}, {}, now)
    assert await house.found(answer="4xx") == [rejected]
    assert await house.found(answer="5xx") == [failed]


@on_both
async def test_a_value_of_the_payload_finds_its_calls(desk: Desk) -> None:
    webhook = await desk.webhook(fieldMapping={"fieldOne": "order.number"})
    seven, text, other = [
        await desk.accepted(webhook, {"order": {"number": number}, "tags": ["a", "b"]})
        for number in (7, "7-b", None)
    ]

    async def found(**asked: str) -> list[str]:
        page = await history.listing(desk.gateway, ACTOR, filter_of(**asked))  # type: ignore[arg-type]
        return [item.id for item in page.items]

    assert await found(field="order.number=7") == [seven]
    assert await found(field="order.number=7*") == [text, seven]
    assert await found(field="tags[1]=b") == [other, text, seven]
    assert await found(field="tags[2]") == []
    assert await found(field="order.number=7", status="rejected") == []
    count = await history.count(desk.gateway, ACTOR, filter_of(field="order.number=7*"))
    assert (count.calls, count.or_more) == (2, False)
    refusal = await refused(replays.plan(desk.gateway, ACTOR, filter_of(field="order.number=7")))
    assert "not mapped" in refusal.errors[0].message


async def test_a_payload_is_looked_for_stretch_by_stretch(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    webhook = await desk.webhook()
    first = await desk.accepted(webhook, {"n": "wanted"})
    await desk.numbered(webhook, 5)
    monkeypatch.setattr(looking, "LONGEST_LOOK", 2)
    wanted, cursor, pages = filter_of(field="n=wanted"), None, 0
    found: list[str] = []
    while pages == 0 or cursor is not None:
        page = await history.listing(desk.gateway, ACTOR, wanted, 50, cursor)
        cursor, pages = page.next_cursor, pages + 1
        found += [item.id for item in page.items]
    assert (found, pages) == ([first], 4)


async def test_a_look_ends_when_it_has_read_for_long_enough(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    webhook = await desk.webhook()
    ids = [await desk.accepted(webhook, {"n": "wanted" if number == 1 else number}) for number in range(6)]
    monkeypatch.setattr(looking, "READ_AT_ONCE", 2)
    monkeypatch.setattr(looking, "LONGEST_READING", -1.0)
    wanted, cursor = filter_of(field="n=wanted"), None
    pages: list[tuple[list[str], str | None]] = []
    while not pages or cursor is not None:
        page = await history.listing(desk.gateway, ACTOR, wanted, 50, cursor)
        cursor = page.next_cursor
        pages.append(([item.id for item in page.items], cursor))
    assert pages == [([], ids[4]), ([], ids[2]), ([ids[1]], ids[0]), ([], None)]
    count = await history.count(desk.gateway, ACTOR, wanted)
    assert (count.calls, count.or_more, count.looked_back_to) == (0, True, time_of(ids[4]))


async def test_mapped_values_are_found_by_their_field_and_by_their_beginning(house: House) -> None:
    webhook = await house.webhook(fieldMapping={"fieldOne": "a", "fieldTwo": "b"})
    one = await house.recorded(webhook, b'{"a":"A-17","b":"B-1"}')
    two = await house.recorded(webhook, b'{"a":"B-1","b":"A-18"}')
    await all_findable(house)
    assert await house.found(field="fieldOne=B-1") == [two]
    assert await house.found(field="fieldTwo=A-1*") == [two]
    assert await house.found(field="fieldOne=A-1*") == [one]
    assert await house.found(value="a-1*") == [two, one]
    assert await house.found(value="a-1*", field="fieldTwo=B-1") == [one]
    assert await house.found(value="a-19*") == []
    assert await house.found(field="fieldThree") == []
    assert await house.found(field="fieldOne") == [two, one]
    planned = await replays.plan(house.gateway, OWNER, filter_of(field="fieldOne=B-1"))
    assert planned.count == 1


async def test_what_begins_alike_too_often_is_still_found(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    webhook = await house.webhook(fieldMapping={"fieldOne": "a"})
    calls = [await house.recorded(webhook, b'{"a":"A-%d"}' % n) for n in range(4)]
    await all_findable(house)
    monkeypatch.setattr(filtering, "MANY", 2)
    assert await house.found(value="A-*") == calls[::-1]
