"""Replaying many: planned, run, watched, cancelled; and whatever is interrupted, nothing is started twice."""

import asyncio
import re
from collections import Counter
from typing import Any, Literal

import pytest
from msgspec.structs import replace
from sqlalchemy import select, update

from postern.core.answer import WorkflowResponse
from postern.core.deliveries.delivery import End, Started
from postern.core.history.invocation import HistoryFilter
from postern.core.history.replay import Replay, Values
from postern.core.problems import Refused
from postern.identity import time_of
from postern.settings import Settings
from postern.stores.sql.tables import deliveries
from postern.stores.sql.tables import replays as table
from postern.usecases.access import audit
from postern.usecases.deliveries import replays, views
from postern.usecases.deliveries.replays import Replayer
from postern.usecases.history import history, marks
from postern.usecases.summary import InvocationSummary, summary_of
from postern.usecases.webhooks import webhooks
from postern.wiring.gateway import opened
from support.clock import HeldClock, later
from support.desk import ACTOR, Desk, on_both
from support.house import NotingEngine
from support.refusals import refused
from support.waiting import PATIENCE


class Answering(NotingEngine):
    """Its workflow answers the caller who waits, with 201."""

    async def ended(self, key: str) -> WorkflowResponse:
        return WorkflowResponse(201, (), b"made")


async def emissions(desk: Desk) -> Counter[str]:
    rows = await desk.rows(select(deliveries.c.invocation_id).where(deliveries.c.emission > 1))
    return Counter(row.invocation_id for row in rows)


async def end(desk: Desk, key: str, state: Literal["completed", "failed"]) -> None:
    """As if its workflow had run."""
    now = desk.gateway.clock()
    await desk.store.deliveries.started(await desk.store.deliveries.get(key), Started(1), now)
    await desk.store.endings.note([], {key: End(state, now, "")}, {}, now)


async def run(
    desk: Desk, values: Values = "recorded", include_completed: bool = False, **wanted: Any
) -> views.Replay:
    plan = await replays.plan(desk.gateway, ACTOR, HistoryFilter(**wanted), include_completed)
    await replays.begin(desk.gateway, ACTOR, plan.id, values)
    await Replayer(desk.gateway).round()
    return await replays.show(desk.gateway, ACTOR, plan.id)


async def test_a_plan_counts_and_starts_nothing(desk: Desk) -> None:
    one, other = await desk.webhook(), await desk.webhook()
    ids = await desk.numbered(one, 3)
    await desk.accepted(other, {})
    await desk.call(one, b"not json")
    plan = await replays.plan(desk.gateway, ACTOR, HistoryFilter(one))
    assert (plan.state, plan.count) == ("planned", 3)
    accepted = (await history.listing(desk.gateway, ACTOR, HistoryFilter(one, "accepted"))).items
    assert (plan.first, [call.id for call in plan.first]) == (accepted[::-1], ids)
    assert re.fullmatch("rpl_[0-9a-f]{32}", plan.id)
    assert await Replayer(desk.gateway).round() is False
    assert not await emissions(desk)


async def test_a_replay_carries_the_recorded_values_and_those_of_todays_mapping_when_asked(
    desk: Desk,
) -> None:
    webhook = await desk.webhook(fieldMapping={"fieldOne": "n"})
    invocation = await desk.accepted(webhook, {"n": 1, "m": 2})
    await webhooks.change(desk.gateway, ACTOR, webhook, {"fieldMapping": {"fieldOne": "m"}})
    await history.replay(desk.gateway, ACTOR, invocation)
    await history.replay(desk.gateway, ACTOR, invocation, "current")
    assert (await run(desk)).fields == "recorded"
    assert (await run(desk, "current")).fields == "current"
    touched = await history.show(desk.gateway, ACTOR, invocation)
    assert [one.fields["fieldOne"] for one in touched.deliveries] == ["1", "1", "2", "1", "2"]
    (_, replay) = (await replays.listing(desk.gateway, ACTOR)).items
    (note, _) = (await audit.listing(desk.gateway, ACTOR, subject=replay.id)).items
    assert note.changes == {"fields": "recorded"}


async def test_each_start_tells_who_asked_for_it(desk: Desk) -> None:
    """Who began a replay of many, not who planned it: a plan starts nothing."""
    webhook = await desk.webhook()
    invocation = await desk.accepted(webhook, {"n": 1})
    ada, bob = replace(ACTOR, name="ada"), replace(ACTOR, name="bob")
    await history.replay(desk.gateway, ada, invocation)
    plan = await replays.plan(desk.gateway, ada, HistoryFilter())
    assert (plan.created_by, plan.started_by) == ("ada", None)
    begun = await replays.begin(desk.gateway, bob, plan.id)
    assert (begun.created_by, begun.started_by) == ("ada", "bob")
    await Replayer(desk.gateway).round()
    call = await history.show(desk.gateway, ACTOR, invocation)
    assert [one.asked_by for one in call.deliveries] == [None, "ada", "bob"]


@on_both
async def test_pages_that_ask_for_the_same_start_start_it_once_with_two_workers_too(
    desk: Desk, settings: Settings
) -> None:
    invocation = await desk.accepted(await desk.webhook(), {"n": 1})
    async with opened(settings) as second:
        asked = [
            history.replay(gateway, ACTOR, invocation, emission=2)
            for gateway in (desk.gateway, second)
            for _ in range(5)
        ]
        heard = await asyncio.gather(*asked, return_exceptions=True)
    refusals = [one.code for one in heard if isinstance(one, Refused)]
    assert refusals == ["version_conflict"] * 9
    assert await emissions(desk) == Counter([invocation])


async def test_more_than_one_plan_holds_are_refused(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replays, "MOST_CALLS", 2)
    webhook = await desk.webhook()
    for count in (1, 2):
        await desk.accepted(webhook, {"n": count})
        assert (await replays.plan(desk.gateway, ACTOR, HistoryFilter())).count == count
    await desk.accepted(webhook, {"n": 3})
    assert (await refused(replays.plan(desk.gateway, ACTOR, HistoryFilter()))).code == "invalid_request"


@on_both
async def test_two_processes_at_once_start_nothing_twice(desk: Desk) -> None:
    replay = await begun(desk, 50)
    ids = [one.id for one in (await history.listing(desk.gateway, ACTOR, HistoryFilter(), 50)).items]
    claimed = await desk.store.replays.claim(desk.gateway.clock(), 0.0)  # a lease that is over at once
    assert isinstance(claimed, Replay)

    async def go_on() -> None:
        now: Replay | None = claimed
        while now is not None:
            now = await replays.step(desk.gateway, now)

    await asyncio.gather(go_on(), go_on(), Replayer(desk.gateway).round())
    await Replayer(desk.gateway).round()
    assert await emissions(desk) == Counter(ids)
    assert (await replays.show(desk.gateway, ACTOR, replay)).done == 50


@on_both
async def test_a_process_that_is_alone_goes_on_at_once_with_what_a_dead_one_was_at(
    settings: Settings,
) -> None:
    async with opened(settings) as gateway:
        plan = await replays.plan(gateway, ACTOR, HistoryFilter())
        await replays.begin(gateway, ACTOR, plan.id)
        assert await gateway.store.replays.claim(gateway.clock(), replays.LEASE) is not None
        assert await Replayer(gateway).round() is False
    async with opened(settings, "http://127.0.0.1:1") as gateway:
        assert await Replayer(gateway).round() is True


async def test_a_cancelled_run_starts_nothing_more(desk: Desk) -> None:
    replay = await begun(desk, 50)
    claimed = await desk.store.replays.claim(desk.gateway.clock(), 0.0)
    assert claimed is not None
    going_on = await replays.step(desk.gateway, claimed)
    assert going_on is not None
    with pytest.raises(Refused, match="this replay is running; a plan is run once"):
        await replays.begin(desk.gateway, ACTOR, replay)
    result = await replays.cancel(desk.gateway, ACTOR, replay)
    assert (result.state, result.done, result.ended_at is not None) == ("cancelled", replays.STEP, True)
    with pytest.raises(Refused, match="this replay is cancelled already"):
        await replays.cancel(desk.gateway, ACTOR, replay)
    noted = (await audit.listing(desk.gateway, ACTOR, subject=replay)).items
    assert [one.action for one in noted] == ["replay cancelled", "replay begun", "replay planned"]
    assert await replays.step(desk.gateway, going_on) is None
    assert sum((await emissions(desk)).values()) == replays.STEP


async def test_a_replay_never_changes_what_the_caller_heard(desk: Desk) -> None:
    desk.gateway.engine = Answering()
    webhook = await desk.webhook(synchronousResponse={"enabled": True})
    assert (await desk.call(webhook, {"n": 1})).status == 201

    async def shown() -> list[InvocationSummary]:
        """In the list, on its page, and in the live view."""
        (item,) = (await history.listing(desk.gateway, ACTOR, HistoryFilter())).items
        (story,) = await desk.store.history.some([item.id])
        return [item, await history.show(desk.gateway, ACTOR, item.id), summary_of(story)]

    before = await shown()
    assert {one.http_status for one in before} == {201}
    await history.replay(desk.gateway, ACTOR, before[0].id)
    after = await shown()
    assert [(one.http_status, one.duration_ms) for one in after] == [(201, before[0].duration_ms)] * 3
    assert {one.status for one in after} == {"accepted"}  # the status alone tells of the replay, which waits
    desk.gateway.engine = None


@on_both
async def test_a_replay_tells_what_became_of_what_it_started(desk: Desk) -> None:
    """And is a filter of the history: its failed ones are replayed by another replay."""
    ids = await desk.numbered(await desk.webhook(), 5)
    before = await run(desk, until=time_of(ids[0]))
    replay = await run(desk)
    assert (str(before.outcomes), str(replay.outcomes)) == ("", "5 waiting")
    await end(desk, f"{ids[0]}.2", "completed")
    await end(desk, f"{ids[1]}.2", "failed")
    now = desk.gateway.clock()
    started, broken = [await desk.store.deliveries.get(f"{one}.2") for one in ids[2:4]]
    await desk.store.deliveries.started(started, Started(1), now)
    await desk.store.deliveries.failed(broken, "ERP said 503 to job 10_42%", now)

    shown = await replays.show(desk.gateway, ACTOR, replay.id)
    assert (shown.state, shown.done) == ("done", 5)
    assert shown.outcomes == views.ReplayOutcomes(queued=1, started=1, completed=1, failed=2)
    assert str(shown.outcomes) == "1 completed, 2 failed, 1 started, 1 waiting"
    listed = (await replays.listing(desk.gateway, ACTOR)).items
    nothing = views.ReplayOutcomes()
    assert {one.id: one.outcomes for one in listed} == {replay.id: shown.outcomes, before.id: nothing}
    call = await history.show(desk.gateway, ACTOR, ids[0])
    assert [one.replay_id for one in call.deliveries] == [None, replay.id]

    async def found(**wanted: Any) -> list[str]:
        page = await history.listing(desk.gateway, ACTOR, HistoryFilter(**wanted))
        counted = await history.count(desk.gateway, ACTOR, HistoryFilter(**wanted))
        assert counted.calls == len(page.items)
        return sorted(one.id for one in page.items)

    assert await found(replay=replay.id) == sorted(ids)
    assert await found(replay=before.id) == await found(replay="rpl_none") == []
    failed = sorted([ids[1], ids[3]])
    assert await found(replay=replay.id, status="failed") == failed
    for error, those in (
        ("ERP said 503 to job …", [ids[3]]),
        ("ERP said 503", []),
        ("…10_42%", [ids[3]]),
        ("…10?42…", []),
        ("…1042%", []),
    ):
        assert await found(error=error) == those, error
    for text, those in (
        ("erp SAID 503", [ids[3]]),
        ("job 10_42%", [ids[3]]),
        ("job 10?42%", []),
        ("ERP said 504", []),
    ):
        assert await found(search=text) == those, text
    assert await found(value=",".join(failed)) == failed
    again = await run(desk, replay=replay.id, status="failed")
    assert (again.count, str(again.outcomes)) == (2, "2 waiting")
    assert await found(replay=again.id) == failed
    assert await replays.show(desk.gateway, ACTOR, replay.id) == shown, "its deliveries stay what they became"


@on_both
async def test_what_has_completed_is_replayed_only_where_that_is_asked_for(desk: Desk) -> None:
    """What the newest delivery says counts, and it is looked at again while the plan is run."""
    ids = await desk.numbered(await desk.webhook(), 4)
    await end(desk, f"{ids[0]}.1", "completed")
    await end(desk, f"{ids[1]}.1", "failed")
    await end(desk, f"{ids[2]}.1", "completed")

    async def planned(include: bool, **wanted: Any) -> tuple[int, int]:
        plan = await replays.plan(desk.gateway, ACTOR, HistoryFilter(**wanted), include)
        assert plan.include_completed is include
        return plan.count, plan.completed

    assert (await planned(False), await planned(True)) == ((2, 2), (4, 2))
    assert await planned(False, status="completed") == (0, 2)
    assert await planned(True, status="completed") == (2, 2)
    assert await planned(False, status="failed") == (1, 0)

    plan = await replays.plan(desk.gateway, ACTOR, HistoryFilter())
    await replays.begin(desk.gateway, ACTOR, plan.id)
    await end(desk, f"{ids[3]}.1", "completed")
    await Replayer(desk.gateway).round()
    assert await emissions(desk) == Counter([ids[1]])
    result = await replays.show(desk.gateway, ACTOR, plan.id)
    assert (result.state, result.done, result.skipped) == ("done", 1, 1)

    await end(desk, f"{ids[1]}.2", "completed")
    assert (await run(desk)).done == 0
    assert (await run(desk, include_completed=True)).done == 4
    await end(desk, f"{ids[0]}.2", "failed")
    assert await planned(False) == (4, 0), "one has failed since, and three wait"


async def test_of_two_plans_for_the_same_calls_the_second_starts_none_of_them_again(desk: Desk) -> None:
    """Two tabs, or two people, have begun with the same list."""
    ids = await desk.numbered(await desk.webhook(), 3)
    clock = HeldClock(desk.gateway, desk.gateway.clock() + 1)
    one, other = [await replays.plan(desk.gateway, ACTOR, HistoryFilter(), True) for _ in range(2)]
    clock.now += 1
    for plan in (one, other):
        await replays.begin(desk.gateway, ACTOR, plan.id)
        await Replayer(desk.gateway).round()
    assert await emissions(desk) == Counter(ids)
    left_out = await replays.show(desk.gateway, ACTOR, other.id)
    assert (left_out.state, left_out.count, left_out.done, left_out.skipped) == ("done", 3, 0, 3)
    assert (await run(desk)).done == 3, "a later plan means it"


async def test_what_has_failed_or_was_marked_since_the_plan_is_not_among_its_calls(desk: Desk) -> None:
    ids = await desk.numbered(await desk.webhook(), 6)
    clock = HeldClock(desk.gateway, desk.gateway.clock() + 1)

    async def fail_and_mark(ended: str, refused: str, marked: str) -> None:
        await end(desk, f"{ended}.1", "failed")
        store = desk.store.deliveries
        await store.failed(await store.get(f"{refused}.1"), "no such workflow", clock.now)
        await marks.bookmark(desk.gateway, ACTOR, marked)

    await fail_and_mark(*ids[:3])
    wanted = HistoryFilter(status="failed"), HistoryFilter(bookmarked=True)
    plans = [await replays.plan(desk.gateway, ACTOR, criteria) for criteria in wanted]
    clock.now += 1
    await fail_and_mark(*ids[3:])
    for plan, count in zip(plans, (2, 1), strict=True):
        await replays.begin(desk.gateway, ACTOR, plan.id)
        await Replayer(desk.gateway).round()
        shown = await replays.show(desk.gateway, ACTOR, plan.id)
        assert (shown.count, shown.done, shown.skipped) == (count, count, 0)
    assert await emissions(desk) == Counter(ids[:3])


async def test_a_replay_of_many_leaves_an_array_out_that_was_divided(desk: Desk) -> None:
    """Its elements are calls of their own."""
    whole, usual = await desk.numbered(await desk.webhook(), 2)
    divided = (
        update(deliveries)
        .where(deliveries.c.invocation_id == whole)
        .values(state="completed", started_at=None)
    )
    await desk.store.writer.write(lambda connection: connection.execute(divided).rowcount)
    replay = await run(desk, include_completed=True)
    assert (replay.done, replay.skipped) == (1, 1)
    assert await emissions(desk) == Counter([usual])


async def test_it_waits_while_much_is_queued(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replays, "MOST_QUEUED", 1)
    monkeypatch.setattr(replays, "CHECK_REPLAYS_EVERY", 0.01)
    replay = await begun(desk, 1)
    replayer = Replayer(desk.gateway)
    waiting = asyncio.create_task(replayer.round())
    leases: set[int] = set()
    while len(leases) < 4 and not waiting.done():  # as begun, as claimed, and renewed more than once
        leases.add((await desk.rows(select(table.c.next_at)))[0].next_at)
    assert (len(leases), await emissions(desk)) == (4, Counter())
    await replays.cancel(desk.gateway, ACTOR, replay)
    await asyncio.wait_for(waiting, PATIENCE)


@pytest.mark.parametrize("is_deleted", [True, False])
async def test_what_starts_nothing_cannot_be_planned_and_is_left_out_of_a_plan_for_all(
    desk: Desk, is_deleted: bool
) -> None:
    """What is disabled between the plan and its run is told as passed over; neither is started."""
    goes, before, between = [await desk.webhook() for _ in range(3)]
    assert (await replays.plan(desk.gateway, ACTOR, HistoryFilter(before))).count == 0, "nobody has called it"
    for webhook in (before, goes, between, goes, before):
        await desk.accepted(webhook, {})

    async def take_away(webhook: str) -> None:
        if is_deleted:
            await webhooks.remove(desk.gateway, ACTOR, webhook)
        else:
            await webhooks.switch(desk.gateway, ACTOR, webhook, False)

    await take_away(before)
    with pytest.raises(Refused, match="deleted" if is_deleted else "disabled"):
        await replays.plan(desk.gateway, ACTOR, HistoryFilter(before))
    plan = await replays.plan(desk.gateway, ACTOR, HistoryFilter())
    assert plan.count == 3
    await take_away(between)
    await replays.begin(desk.gateway, ACTOR, plan.id)
    await Replayer(desk.gateway).round()
    result = await replays.show(desk.gateway, ACTOR, plan.id)
    assert (result.state, result.done, result.skipped) == ("done", 2, 1)
    assert sum((await emissions(desk)).values()) == 2


async def test_calls_that_retention_takes_meanwhile_are_skipped(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    await desk.accepted(await desk.webhook(), {})

    async def taken(ids: list[str], largest_body: int | None = None) -> list[object]:
        return []

    monkeypatch.setattr(desk.store.history, "brief", taken)
    result = await run(desk)
    assert (result.state, result.done, result.skipped) == ("done", 0, 1)


async def test_a_plan_ends_when_it_was_made_or_earlier(desk: Desk) -> None:
    now = HeldClock(desk.gateway).now
    for asked, until in ((None, now), (now + 1_000, now), (now - 1_000, now - 1_000)):
        plan = await replays.plan(desk.gateway, ACTOR, HistoryFilter(until=asked))
        assert plan.filter.until == pytest.approx(until, abs=0.002)
        assert (plan.state, plan.created_at, plan.started_at, plan.ended_at) == ("planned", now, None, None)
    (note, *_) = (await audit.listing(desk.gateway, ACTOR, subject=plan.id)).items
    assert (note.action, note.changes["count"]) == ("replay planned", 0)
    assert note.changes["filter"]["until"] == str(plan.filter.until)


async def test_the_replays_of_many_are_listed_the_newest_first(desk: Desk) -> None:
    made = [(await replays.plan(desk.gateway, ACTOR, HistoryFilter())).id for _ in range(3)]
    made.sort(reverse=True)

    async def page(*asked: Any) -> tuple[list[str], str | None]:
        found = await replays.listing(desk.gateway, ACTOR, *asked)
        return [one.id for one in found.items], found.next_cursor

    assert await page() == (made, None)
    assert await page(3) == (made, None)
    assert await page(2) == (made[:2], made[1])
    assert await page(2, made[1]) == (made[2:], None)
    assert await page(0) == (made[:1], made[0]), "one at least"
    assert (await refused(replays.show(desk.gateway, ACTOR, "rpl_none"))).code == "not_found"


async def begun(desk: Desk, calls: int) -> str:
    await desk.numbered(await desk.webhook(), calls)
    plan = await replays.plan(desk.gateway, ACTOR, HistoryFilter())
    await replays.begin(desk.gateway, ACTOR, plan.id)
    return plan.id


@on_both
async def test_what_a_process_has_begun_is_another_one_s_when_its_lease_is_over(desk: Desk) -> None:
    clock = HeldClock(desk.gateway, desk.gateway.clock() + 10)
    await begun(desk, replays.STEP + 1)
    claimed = await desk.store.replays.claim(clock.now, replays.LEASE)
    clock.now += replays.LEASE - 1
    assert await desk.store.replays.claim(clock.now, replays.LEASE) is None
    assert await replays.step(desk.gateway, claimed) is not None  # which makes it longer
    clock.now += replays.LEASE - 1
    assert await Replayer(desk.gateway).round() is False
    clock.now += 1
    assert await Replayer(desk.gateway).round() is True
    assert sum((await emissions(desk)).values()) == replays.STEP + 1


async def test_a_process_that_is_asked_to_stop_leaves_the_rest_to_another_one_at_once(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    later(desk.gateway, 10)
    await begun(desk, 2 * replays.STEP + 1)
    replayer, step = Replayer(desk.gateway), replays.step

    async def one_step(*given: Any) -> Replay | None:
        replayer.stop()
        return await step(*given)

    monkeypatch.setattr(replays, "step", one_step)
    assert await replayer.round() is True
    assert sum((await emissions(desk)).values()) == replays.STEP
    monkeypatch.setattr(replays, "step", step)
    assert await Replayer(desk.gateway).round() is True
    assert sum((await emissions(desk)).values()) == 2 * replays.STEP + 1
