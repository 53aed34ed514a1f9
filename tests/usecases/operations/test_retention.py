from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import func, insert, select

from postern.core.deliveries.delivery import EngineRejected, EngineUnavailable, Run, Started
from postern.core.history.invocation import HistoryFilter, StoreUnavailable
from postern.core.operations.retention import DAY, Rejected, RetentionPolicy, rejected_to_delete
from postern.stores.history import retention as stored
from postern.stores.sql.moments import milliseconds
from postern.stores.sql.tables import (
    deliveries,
    duplicate_keys,
    engine_deletions,
    idempotency,
    invocations,
    sessions,
    volumes,
)
from postern.usecases.access import audit
from postern.usecases.answers import as_plain
from postern.usecases.calls import readmission
from postern.usecases.deliveries import holds, replays
from postern.usecases.history import history
from postern.usecases.operations import readiness, retention
from postern.usecases.operations.retention import RetentionLoop, plan, prune
from postern.usecases.webhooks import webhooks
from support.clock import later
from support.desk import ACTOR, Desk, on_both
from support.house import OWNER, House, NotingEngine


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a handful of rows takes several, without the pause after each, which is tried by itself."""
    monkeypatch.setattr(stored, "STEP", 3)
    monkeypatch.setattr(retention, "time", SimpleNamespace(perf_counter=lambda: 0.0))


async def ids(desk: Desk) -> list[str]:
    return [row.id for row in await desk.rows(select(invocations.c.id).order_by(invocations.c.id))]


async def count(desk: Desk, table: Any) -> int:
    return int((await desk.rows(select(func.count()).select_from(table)))[0][0])


async def settle(desk: Desk) -> None:
    """Every due delivery is started, as the dispatcher notes it."""
    for delivery in await desk.store.deliveries.claim(desk.gateway.clock() + 1, 30, 1000):
        await desk.store.deliveries.started(delivery, Started(1), desk.gateway.clock())


@on_both
async def test_what_is_too_old_goes_with_its_deliveries_and_what_is_young_stays(desk: Desk) -> None:
    desk.gateway.retention = RetentionPolicy(history_days=1)
    await desk.numbered(await desk.webhook(), 10)
    await settle(desk)
    assert (await prune(desk.gateway, ACTOR))["invocations"] == 0
    later(desk.gateway, 2 * DAY)
    planned = await plan(desk.gateway, ACTOR)
    assert planned == {"invocations": 10, "bodies": 0, "rejected": 0}  # nothing of a cap that is not set
    progress: list[tuple[str, int]] = []
    done = await prune(desk.gateway, ACTOR, lambda what, so_far: progress.append((what, so_far)))
    assert done["invocations"] == 10
    assert [so_far for what, so_far in progress if what == "invocations"] == [3, 6, 9, 10]
    assert await count(desk, invocations) == await count(desk, deliveries) == 0


@on_both
async def test_what_is_still_to_be_started_is_never_taken(desk: Desk) -> None:
    desk.gateway.retention = RetentionPolicy(history_days=1, body_days=0)
    webhook, held = await desk.webhook(), await desk.webhook("held")
    await holds.hold(desk.gateway, ACTOR, held)
    waiting = await desk.numbered(held, 5)
    queued = await desk.accepted(webhook, {"n": 1})
    later(desk.gateway, 40 * DAY)
    await prune(desk.gateway, ACTOR)
    assert await ids(desk) == sorted([*waiting, queued])
    assert as_plain((await history.show(desk.gateway, ACTOR, queued)).payload) == {"n": 1}
    await settle(desk)
    await prune(desk.gateway, ACTOR)
    assert await ids(desk) == sorted(waiting)


@on_both
async def test_a_webhook_may_have_its_own_rule_and_a_deleted_one_has_the_gateways(desk: Desk) -> None:
    short, long = [await desk.webhook(historyRetentionDays=days) for days in (1, 90)]
    deleted = await desk.webhook()
    for webhook in (short, long, deleted):
        await desk.accepted(webhook, {"n": 1})
    await settle(desk)
    await webhooks.remove(desk.gateway, ACTOR, deleted)
    later(desk.gateway, 2 * DAY)
    assert (await prune(desk.gateway, ACTOR))["invocations"] == 1
    later(desk.gateway, 40 * DAY)
    assert (await prune(desk.gateway, ACTOR))["invocations"] == 1
    assert await count(desk, invocations) == 1


async def test_bodies_can_go_sooner_than_their_calls(desk: Desk) -> None:
    first = await desk.numbered(await desk.webhook(bodyRetentionDays=1), 7)
    await settle(desk)
    later(desk.gateway, 2 * DAY)
    assert (await plan(desk.gateway, ACTOR))["bodies"] == 7
    assert (await prune(desk.gateway, ACTOR))["bodies"] == 7
    assert (await prune(desk.gateway, ACTOR))["bodies"] == 0
    shown = await history.show(desk.gateway, ACTOR, first[0])
    assert (shown.body, shown.body_size, shown.status) == (None, 7, "started")


@on_both
async def test_bodies_of_filtered_calls_can_go_sooner_than_others(desk: Desk) -> None:
    conditions = [{"of": "n", "is": "less", "values": [2]}]
    webhook = await desk.webhook(conditions=conditions, filteredRetentionDays=1, bodyRetentionDays=3)
    made = await desk.numbered(webhook, 5)
    await settle(desk)
    await history.replay(desk.gateway, ACTOR, made[4])
    later(desk.gateway, 2 * DAY)
    assert (await plan(desk.gateway, ACTOR))["bodies"] == 3
    assert (await prune(desk.gateway, ACTOR))["bodies"] == 2, "one of them is still to be started"
    assert [(await history.show(desk.gateway, ACTOR, one)).body is None for one in made] == [
        *(False, False, True, True, False)
    ]
    await settle(desk)
    assert (await prune(desk.gateway, ACTOR))["bodies"] == 1
    later(desk.gateway, 2 * DAY)
    assert (await prune(desk.gateway, ACTOR))["bodies"] == 2


@on_both
async def test_over_the_cap_the_oldest_go_first(desk: Desk) -> None:
    desk.gateway.retention = RetentionPolicy(most_rows=4)
    came = await desk.numbered(await desk.webhook(), 9)
    await settle(desk)
    assert (await plan(desk.gateway, ACTOR))["overTheCap"] == 5
    await prune(desk.gateway, ACTOR)
    assert await ids(desk) == came[-4:]


@on_both
async def test_a_session_goes_that_nobody_has_used_for_half_a_day_however_old_it_is(desk: Desk) -> None:
    now = desk.gateway.clock()
    common = {"user_id": "usr", "address": "", "user_agent": ""}
    rows = [
        {
            **common,
            "id": name,
            "digest": name.encode(),
            "created_at": milliseconds(now - created * 3600),
            "seen_at": milliseconds(now - seen * 3600),
        }
        for name, created, seen in (("old_in_use", 90, 1), ("left_behind", 14, 13))
    ]
    await desk.store.writer.write(lambda connection: connection.execute(insert(sessions), rows))
    await prune(desk.gateway, ACTOR)
    assert [row.id for row in await desk.rows(select(sessions.c.id))] == ["old_in_use"]


@on_both
async def test_expired_keys_and_old_counts_go(desk: Desk) -> None:
    webhook = await desk.webhook(duplicateProtection={"enabled": True, "windowSeconds": 3600})
    await desk.accepted(webhook, {"n": 1})
    later(desk.gateway, 0.5 * DAY)
    await prune(desk.gateway, ACTOR)
    assert (await count(desk, duplicate_keys), await count(desk, volumes)) == (0, 1)
    later(desk.gateway, 91 * DAY)
    await prune(desk.gateway, ACTOR)
    assert await count(desk, volumes) == 0


@on_both
async def test_old_notes_of_who_changed_what_and_replays_that_are_over_go(desk: Desk) -> None:
    begun, never_begun = [(await replays.plan(desk.gateway, ACTOR, HistoryFilter())).id for _ in range(2)]
    done = (await replays.plan(desk.gateway, ACTOR, HistoryFilter())).id
    await replays.begin(desk.gateway, ACTOR, begun)
    await replays.cancel(desk.gateway, ACTOR, done)
    now = desk.gateway.clock()
    assert await desk.store.idempotency.begin("somebody", "key", b"\0" * 32, now, now + 60) is None

    async def planned() -> list[str]:
        return [one.id for one in (await replays.listing(desk.gateway, ACTOR)).items]

    await prune(desk.gateway, ACTOR)
    assert await count(desk, idempotency) == 1
    assert await planned() == [done, never_begun, begun]
    later(desk.gateway, 366 * DAY)
    notes = len((await audit.listing(desk.gateway, ACTOR)).items)
    took = await prune(desk.gateway, ACTOR)
    assert took["expired"] == notes + 3, "besides the notes a key and two replays"
    assert await count(desk, idempotency) == 0
    assert await planned() == [begun], "it is still to be done"
    assert [one.action for one in (await audit.listing(desk.gateway, ACTOR)).items] == ["history pruned"]


class Copies(NotingEngine):
    """An engine that holds copies, one of whose runs is not over."""

    def __init__(self, going: str) -> None:
        super().__init__()
        self.going = going
        self.forgot: list[str] = []

    async def runs(self, limit: int = 50, delivery_key: str | None = None) -> list[Run]:
        state = "sleeping" if delivery_key and delivery_key.startswith(self.going) else "completed"
        return [Run("r", "w", state, delivery_key or "", 0.0)]

    async def forget(self, keys: list[str]) -> None:
        self.forgot += keys


@on_both
async def test_the_engine_forgets_what_was_deleted_even_by_a_command_but_never_a_run_that_still_goes(
    desk: Desk,
) -> None:
    ended, going = await desk.numbered(await desk.webhook(), 2)
    await settle(desk)
    later(desk.gateway, 31 * DAY)
    await prune(desk.gateway, ACTOR)  # as the command line does, without an engine
    assert await count(desk, engine_deletions) == 2
    engine = desk.gateway.engine = Copies(going)
    assert (await prune(desk.gateway, ACTOR))["engineCopies"] == 1
    assert engine.forgot == [f"{ended}.1"]
    engine.going = "none"
    await prune(desk.gateway, ACTOR)
    assert engine.forgot == [f"{ended}.1", f"{going}.1"]
    assert await count(desk, engine_deletions) == 0
    desk.gateway.engine = None


@pytest.mark.parametrize(
    "trouble", [EngineUnavailable("it is away"), EngineRejected("it knows no such thing")]
)
async def test_while_the_engine_cannot_be_asked_pruning_goes_round_and_its_copies_stay_noted(
    desk: Desk, trouble: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    webhook = await desk.webhook()
    await desk.accepted(webhook, {})
    await settle(desk)
    later(desk.gateway, 31 * DAY)
    engine = desk.gateway.engine = Copies("none")

    async def away(_: list[str]) -> None:
        raise trouble

    with monkeypatch.context() as patched:
        patched.setattr(engine, "forget", away)
        assert (await prune(desk.gateway, ACTOR))["engineCopies"] == 0
    assert (await retention.last(desk.gateway, ACTOR)).pruned_at is not None
    assert await count(desk, engine_deletions) == 1
    assert (await prune(desk.gateway, ACTOR))["engineCopies"] == 1
    desk.gateway.engine = None


async def test_a_flood_of_rejected_calls_is_trimmed_while_it_comes(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = 1_300  # about what such a call takes
    monkeypatch.setattr(retention, "REJECTED_BYTES", 20 * size)
    monkeypatch.setattr("postern.usecases.runtime.process.TRIM_AFTER", 30 * size)
    webhook, other = await desk.webhook(), await desk.webhook()
    kept = await desk.accepted(webhook, {"n": 1})
    await desk.call(other, b"not json")
    keeper = RetentionLoop(desk.gateway)
    for _ in range(200):
        await desk.call(webhook, b"not json")
        if desk.gateway.runtime.rejections.any_full.is_set():
            await keeper.round()
            assert await count(desk, invocations) <= (20 + 30 + 2) * 1.3
    assert kept in await ids(desk)
    assert len(await desk.rows(select(invocations.c.id).where(invocations.c.webhook_id == other))) == 1


@on_both
async def test_a_rejected_call_that_was_admitted_stays(desk: Desk) -> None:
    """It is looked at before it is deleted, and may be admitted between the two."""
    webhook = await desk.webhook(authentication={"method": "token", "token": "whk_0123456789abcdef"})
    for _ in range(2):
        await desk.call(webhook, {"n": 1})
    await webhooks.change(desk.gateway, ACTOR, webhook, {"authentication": {"method": "none"}})
    rejected, admitted = await ids(desk)
    assert await desk.store.retention.rejected_beyond(webhook, 1) == [[rejected, admitted]]
    await readmission.admit(desk.gateway, ACTOR, [admitted])
    assert await desk.store.retention.rejected_beyond(webhook, 1) == [[rejected]]
    await settle(desk)
    now = desk.gateway.clock()
    assert await desk.store.retention.delete_rejected([rejected, admitted], now) == 1
    assert await ids(desk) == [admitted]


def test_rejected_calls_of_a_crowd_never_push_out_those_of_a_lone_sender() -> None:
    def calls(first: int, number: int, address: str, code: str, size: int) -> list[Rejected]:
        return [Rejected(f"inv_{n:06}", address.format(n), code, size) for n in range(first, first + number)]

    sender = calls(0, 5, "192.0.2.1", "signature_mismatch", 3_000)
    beside = calls(10, 500, "192.0.2.1", "method_not_allowed", 1_000)
    crowd = [
        one
        for n in range(12)
        for one in calls(1000 * n + 1000, 100, f"198.51.100.{n}", "method_not_allowed", 1_500)
    ]
    network = calls(50_000, 5_000, "2001:db8::{:x}", "credential_missing", 1_000)
    everything = sorted(sender + beside + crowd + network)
    room = 500_000
    gone = rejected_to_delete(everything, room)
    kept = set(everything) - set(gone)
    assert set(sender) <= kept
    assert room * 0.96 < sum(one.size for one in kept) <= room, "no less is kept than there is room for"
    for flood in (beside, crowd[:100], crowd[-100:], network):
        left = [one for one in flood if one in kept]
        assert left and left == flood[-len(left) :], "the oldest of each go"
    assert rejected_to_delete(everything, sum(one.size for one in everything)) == []


@on_both
async def test_only_one_of_many_processes_prunes(desk: Desk) -> None:
    now = desk.gateway.clock()
    turns = [await desk.store.chores.my_turn("prune", now + n, 600) for n in (0, 1, 599, 600, 601)]
    assert turns == [True, False, False, True, False]


async def test_when_it_last_went_round_and_what_it_deleted_is_reported(desk: Desk) -> None:
    desk.gateway.retention = RetentionPolicy(history_days=1, body_days=0)
    report = await retention.last(desk.gateway, ACTOR)
    assert (report.history_days, report.body_days, report.most_rows) == (1, 0, None)
    assert (report.pruned_at, report.deleted_at, report.deleted) == (None, None, None)
    await prune(desk.gateway, ACTOR)
    report = await retention.last(desk.gateway, ACTOR)
    assert report.pruned_at is not None and report.deleted is None
    await desk.accepted(await desk.webhook(), {"n": 1})
    await settle(desk)
    later(desk.gateway, 2 * DAY)
    desk.gateway.retention = RetentionPolicy(history_days=1, most_rows=5)
    await prune(desk.gateway, ACTOR)
    later(desk.gateway, DAY)
    await prune(desk.gateway, ACTOR)
    report = await retention.last(desk.gateway, ACTOR)
    assert report.most_rows == 5
    assert report.pruned_at is not None and report.deleted_at is not None
    assert report.pruned_at > report.deleted_at
    assert report.deleted == {"invocations": 1, "bodies": 0, "rejected": 0}


# --- when it goes round ----------------------------------------------------------------------------------------------


class Rounds:
    """The loop at a time that the test says, and what it did in each round."""

    def __init__(self, house: House, monkeypatch: pytest.MonkeyPatch) -> None:
        self.did: list[str] = []
        self.began = self.now = float(int(house.gateway.clock()))
        house.gateway.clock = lambda: self.now
        monkeypatch.setattr(retention, "monotonic", lambda: self.now)

        async def prune(*_: Any) -> dict[str, int]:
            self.did.append("pruned")
            return {"invocations": 0}

        async def roll_up(*_: Any) -> int:
            self.did.append("summed")
            return 0

        monkeypatch.setattr(retention, "_prune", prune)
        monkeypatch.setattr(house.gateway.store.volumes, "roll_up", roll_up)

    async def at(self, loop: RetentionLoop, seconds: float) -> list[str]:
        self.now = self.began + seconds
        self.did.clear()
        await loop.round()
        return self.did.copy()


async def test_it_prunes_half_a_minute_after_the_start_and_then_every_ten_minutes(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds = Rounds(house, monkeypatch)
    loop = RetentionLoop(house.gateway)
    assert await rounds.at(loop, 0) == ["summed"]
    assert await rounds.at(loop, 29) == []
    assert await rounds.at(loop, 30) == ["pruned"]
    assert await rounds.at(loop, 299) == []
    assert await rounds.at(loop, 300) == ["summed"]
    other = RetentionLoop(house.gateway)
    assert await rounds.at(other, 330) == ["summed"], "another process has just pruned"
    assert await rounds.at(loop, 330) == []
    assert await rounds.at(loop, 629) == ["summed"]
    assert await rounds.at(loop, 630) == ["pruned"]
    assert await rounds.at(other, 631) == ["summed"]


@pytest.mark.parametrize("restarted", [False, True], ids=["while it serves", "while it was off"])
async def test_a_clock_that_jumps_deletes_nothing_until_it_has_been_steady_for_an_hour(
    house: House, monkeypatch: pytest.MonkeyPatch, restarted: bool
) -> None:
    house.gateway.retention = RetentionPolicy(history_days=1)
    began, now, passed = house.gateway.clock(), 0.0, 0.0
    monkeypatch.setattr(retention, "monotonic", lambda: passed)
    house.gateway.clock = lambda: began + now
    await house.call(await house.webhook())
    await house.deliver()
    loop = RetentionLoop(house.gateway)

    async def kept(ahead: float, seconds: float) -> tuple[int, bool]:
        nonlocal now, passed
        now, passed = ahead + seconds, seconds
        await loop.round()
        return len(await house.history()), bool(house.gateway.runtime.kept_for_now)

    assert [await kept(ahead, 0) for ahead in (0, 3 * DAY)] == [(1, False)] * 2, (
        "nor before the first pruning"
    )
    now, loop = 0.0, RetentionLoop(house.gateway)
    assert await kept(0, 60) == (1, False)
    if restarted:
        loop = RetentionLoop(house.gateway)
    for seconds in (100, 1000, 3600):
        assert await kept(3 * DAY, seconds) == (1, True)
        await readiness._look(house.gateway)
        assert [trouble.kind for trouble in house.gateway.runtime.troubles] == ["nothing deleted"]
        assert "are kept for now" in (await readiness.readiness(house.gateway)).store.detail
    assert await kept(0, 3700) == (1, False), "it was set right"
    for seconds in (3800, 7000):
        assert await kept(3 * DAY, seconds) == (1, True)
    assert await kept(3 * DAY, 3800 + 3900) == (0, False)


async def test_what_was_only_counted_is_kept_until_it_is_written(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted, rejections = {("wh_1", 1, "rate_limited"): 3}, house.gateway.runtime.rejections
    rejections.put_back(counted)
    count, written = house.gateway.store.volumes.count, []

    async def full(*_: Any) -> None:
        raise StoreUnavailable("the disk is full")

    monkeypatch.setattr(house.gateway.store.volumes, "count", full)
    with pytest.raises(StoreUnavailable):
        await retention.write_counts(house.gateway)

    async def noted(what: Any, now: float) -> None:
        written.append(what)
        await count(what, now)

    monkeypatch.setattr(house.gateway.store.volumes, "count", noted)
    await retention.write_counts(house.gateway)
    await retention.write_counts(house.gateway)
    assert written == [counted], "once, and nothing where there is nothing"


async def test_a_plan_says_what_pruning_then_does(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "REJECTED_BYTES", 3_500)  # of calls that take about 1,300 each
    house.gateway.retention = RetentionPolicy(history_days=1, body_days=0, most_rows=7)
    webhook, other = await house.webhook(), await house.webhook(historyRetentionDays=9)
    for one in (webhook, other):
        await house.call(one)
        for _ in range(4):
            await house.call(one, b"not JSON")
    await house.deliver()
    assert await plan(house.gateway, OWNER) == {"invocations": 0, "bodies": 0, "rejected": 4, "overTheCap": 3}
    later(house.gateway, 2 * DAY)
    planned = await plan(house.gateway, OWNER)
    assert planned == {"invocations": 5, "bodies": 5, "rejected": 4, "overTheCap": 3}
    report: dict[str, list[int]] = {}
    done = await prune(house.gateway, OWNER, lambda what, so_far: report.setdefault(what, []).append(so_far))
    assert (done["invocations"], done["rejected"]) == (5, 2)
    assert done["bodies"] == 3, "two of the five were among the rejected"
    assert {what: steps[-1] for what, steps in report.items() if steps[-1]}.items() <= done.items()
    assert await house.noted() == ("history pruned", "history", done)
    assert await plan(house.gateway, OWNER) == dict.fromkeys(planned, 0)
