from typing import Any

import pytest
from sqlalchemy import func, select

from postern.core.deliveries.delivery import Run, Started
from postern.core.history.invocation import HistoryFilter
from postern.core.operations.retention import DAY, REJECTED_KEPT, RetentionPolicy, rejected_to_delete
from postern.stores.history import retention as stored
from postern.stores.sql.tables import (
    deliveries,
    duplicate_keys,
    engine_deletions,
    idempotency,
    invocations,
    volumes,
)
from postern.usecases.access import audit
from postern.usecases.answers import as_plain
from postern.usecases.deliveries import holds, replays
from postern.usecases.history import history
from postern.usecases.operations import retention
from postern.usecases.operations.retention import RetentionLoop, plan, prune
from postern.usecases.runtime.rejections import TRIM_AFTER
from postern.usecases.webhooks import webhooks
from support.desk import ACTOR, Desk

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a handful of rows takes several."""
    monkeypatch.setattr(stored, "STEP", 3)


async def later(desk: Desk, days: float) -> None:
    now = desk.gateway.clock()
    desk.gateway.clock = lambda: now + days * DAY


async def ids(desk: Desk) -> list[str]:
    return [row.id for row in await desk.rows(select(invocations.c.id).order_by(invocations.c.id))]


async def count(desk: Desk, table: Any) -> int:
    return int((await desk.rows(select(func.count()).select_from(table)))[0][0])


async def settle(desk: Desk) -> None:
    """Every due delivery is started, as the dispatcher notes it."""
    for delivery in await desk.store.deliveries.claim(desk.gateway.clock() + 1, 30, 1000):
        await desk.store.deliveries.started(delivery, Started(1), desk.gateway.clock())


async def test_what_is_too_old_goes_with_its_deliveries_and_what_is_young_stays(desk: Desk) -> None:
    desk.gateway.retention = RetentionPolicy(history_days=1)
    webhook = await desk.webhook()
    for n in range(10):
        await desk.accepted(webhook, {"n": n})
    await settle(desk)
    assert (await prune(desk.gateway, ACTOR))["invocations"] == 0
    await later(desk, 2)
    planned = await plan(desk.gateway, ACTOR)
    assert planned == {"invocations": 10, "bodies": 0, "rejected": 0}  # nothing of a cap that is not set
    progress: list[tuple[str, int]] = []
    done = await prune(desk.gateway, ACTOR, lambda what, so_far: progress.append((what, so_far)))
    assert done["invocations"] == 10
    assert [so_far for what, so_far in progress if what == "invocations"] == [3, 6, 9, 10]
    assert await count(desk, invocations) == await count(desk, deliveries) == 0


async def test_what_is_still_to_be_started_is_never_taken(desk: Desk) -> None:
    desk.gateway.retention = RetentionPolicy(history_days=1, body_days=0)
    webhook, held = await desk.webhook(), await desk.webhook("held")
    await holds.hold(desk.gateway, ACTOR, held)
    waiting = [await desk.accepted(held, {"n": n}) for n in range(5)]
    queued = await desk.accepted(webhook, {"n": 1})
    await later(desk, 40)
    await prune(desk.gateway, ACTOR)
    assert await ids(desk) == sorted([*waiting, queued])
    assert as_plain((await history.show(desk.gateway, ACTOR, queued)).payload) == {"n": 1}
    await settle(desk)
    await prune(desk.gateway, ACTOR)
    assert await ids(desk) == sorted(waiting)


async def test_a_webhook_may_have_its_own_rule_and_a_deleted_one_has_the_gateways(desk: Desk) -> None:
    short, long, deleted = (
        await desk.webhook(historyRetentionDays=1),
        await desk.webhook(historyRetentionDays=90),
        await desk.webhook(),
    )
    for webhook in (short, long, deleted):
        await desk.accepted(webhook, {"n": 1})
    await settle(desk)
    await webhooks.remove(desk.gateway, ACTOR, deleted)
    await later(desk, 2)
    assert (await prune(desk.gateway, ACTOR))["invocations"] == 1
    await later(desk, 40)
    assert (await prune(desk.gateway, ACTOR))["invocations"] == 1
    assert await count(desk, invocations) == 1


async def test_bodies_can_go_sooner_than_their_calls(desk: Desk) -> None:
    webhook = await desk.webhook(bodyRetentionDays=1)
    first = [await desk.accepted(webhook, {"n": n}) for n in range(7)]
    await settle(desk)
    await later(desk, 2)
    assert (await plan(desk.gateway, ACTOR))["bodies"] == 7
    assert (await prune(desk.gateway, ACTOR))["bodies"] == 7
    assert (await prune(desk.gateway, ACTOR))["bodies"] == 0
    shown = await history.show(desk.gateway, ACTOR, first[0])
    assert (shown.body, shown.body_size, shown.status) == (None, 7, "started")


async def test_a_body_that_had_to_stay_is_taken_when_its_time_has_come(desk: Desk) -> None:
    webhook = await desk.webhook(bodyRetentionDays=0)
    await holds.hold(desk.gateway, ACTOR, webhook)
    for n in range(4):
        await desk.accepted(webhook, {"n": n})
    await later(desk, 1)
    assert (await prune(desk.gateway, ACTOR))["bodies"] == 0
    await holds.drop(desk.gateway, ACTOR, webhook)
    assert (await prune(desk.gateway, ACTOR))["bodies"] == 4


async def test_over_the_cap_the_oldest_go_first(desk: Desk) -> None:
    desk.gateway.retention = RetentionPolicy(most_rows=4)
    webhook = await desk.webhook()
    came = [await desk.accepted(webhook, {"n": n}) for n in range(9)]
    await settle(desk)
    assert (await plan(desk.gateway, ACTOR))["overTheCap"] == 5
    await prune(desk.gateway, ACTOR)
    assert await ids(desk) == came[-4:]


async def test_expired_keys_and_old_counts_go(desk: Desk) -> None:
    webhook = await desk.webhook(duplicateProtection={"enabled": True, "windowSeconds": 3600})
    await desk.accepted(webhook, {"n": 1})
    await later(desk, 0.5)
    await prune(desk.gateway, ACTOR)
    assert (await count(desk, duplicate_keys), await count(desk, volumes)) == (0, 1)
    await later(desk, 91)
    await prune(desk.gateway, ACTOR)
    assert await count(desk, volumes) == 0


async def test_old_notes_of_who_changed_what_and_replays_that_are_over_go(desk: Desk) -> None:
    begun, never_begun = [(await replays.plan(desk.gateway, ACTOR, HistoryFilter())).id for _ in range(2)]
    done = (await replays.plan(desk.gateway, ACTOR, HistoryFilter())).id
    await replays.begin(desk.gateway, ACTOR, begun)
    await replays.cancel(desk.gateway, ACTOR, done)
    assert (
        await desk.store.idempotency.begin(
            "somebody", "key", b"\0" * 32, desk.gateway.clock(), desk.gateway.clock() + 60
        )
        is None
    )
    await prune(desk.gateway, ACTOR)
    assert await count(desk, idempotency) == 1
    assert [one.id for one in (await replays.listing(desk.gateway, ACTOR)).items] == [
        done,
        never_begun,
        begun,
    ]
    await later(desk, 366)
    await prune(desk.gateway, ACTOR)
    assert await count(desk, idempotency) == 0
    assert [one.id for one in (await replays.listing(desk.gateway, ACTOR)).items] == [begun], (
        "it is still to be done"
    )
    assert [one.action for one in (await audit.listing(desk.gateway, ACTOR)).items] == ["history pruned"]


class Copies:
    """An engine that holds copies, one of whose runs is not over."""

    name = "copies"
    asked_after = None

    def __init__(self, going: str) -> None:
        self.going = going
        self.forgot: list[str] = []

    async def runs(self, limit: int = 50, delivery_key: str | None = None) -> list[Run]:
        state = "sleeping" if delivery_key and delivery_key.startswith(self.going) else "completed"
        return [Run("r", "w", state, delivery_key or "", 0.0)]

    async def forget(self, keys: list[str]) -> None:
        self.forgot += keys


async def test_the_engine_forgets_what_was_deleted_even_by_a_command_but_never_a_run_that_still_goes(
    desk: Desk,
) -> None:
    webhook = await desk.webhook()
    ended, going = [await desk.accepted(webhook, {"n": n}) for n in range(2)]
    await settle(desk)
    await later(desk, 31)
    await prune(desk.gateway, ACTOR)  # as the command line does, without an engine
    assert await count(desk, engine_deletions) == 2
    engine = Copies(going)
    desk.gateway.engine = engine  # type: ignore[assignment]
    assert (await prune(desk.gateway, ACTOR))["engineCopies"] == 1
    assert engine.forgot == [f"{ended}.1"]
    engine.going = "none"
    await prune(desk.gateway, ACTOR)
    assert engine.forgot == [f"{ended}.1", f"{going}.1"]
    assert await count(desk, engine_deletions) == 0
    desk.gateway.engine = None


async def test_a_flood_of_rejected_calls_is_trimmed_while_it_comes(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "REJECTED_KEPT", 20)
    monkeypatch.setattr("postern.usecases.runtime.rejections.TRIM_AFTER", 30)
    webhook, other = await desk.webhook(), await desk.webhook()
    kept = await desk.accepted(webhook, {"n": 1})
    await desk.call(other, b"not json")
    keeper = RetentionLoop(desk.gateway)
    for _ in range(200):
        await desk.call(webhook, b"not json")
        if desk.gateway.runtime.rejections.any_full.is_set():
            await keeper.round()
            assert await count(desk, invocations) <= 20 + 30 + 2
    assert kept in await ids(desk)
    rest = await desk.rows(
        select(func.count()).select_from(invocations).where(invocations.c.webhook_id == other)
    )
    assert rest[0][0] == 1


def test_rejected_calls_of_one_caller_never_push_out_those_of_another() -> None:
    def ids(first: int, number: int, address: str) -> list[tuple[str, str]]:
        return [(f"inv_{n:06}", address.format(n)) for n in range(first, first + number)]

    sender, stranger = ids(0, 5, "192.0.2.1"), ids(5, 5000, "2001:db8::{:x}")
    newest_first = [*reversed(stranger), *reversed(sender)]
    gone = rejected_to_delete(newest_first, 1000)
    assert gone == [invocation_id for invocation_id, _ in stranger[:4005]]
    many = [one for n in range(30) for one in ids(1000 * n, 300, f"192.0.2.{n}")]
    assert len(rejected_to_delete(reversed(many), 1000)) == len(many) - 1000
    assert rejected_to_delete(newest_first[:1000], 1000) == []


async def test_only_one_of_many_processes_prunes(desk: Desk) -> None:
    now = desk.gateway.clock()
    turns = [await desk.store.retention.my_turn("prune", now + n, 600) for n in (0, 1, 599, 600, 601)]
    assert turns == [True, False, False, True, False]


def test_the_bounds_are_those_that_are_documented() -> None:
    assert (REJECTED_KEPT, TRIM_AFTER) == (1000, 500)


async def test_when_it_last_went_round_and_what_it_deleted_is_told(desk: Desk) -> None:
    desk.gateway.retention = RetentionPolicy(history_days=1, body_days=0)
    told = await retention.last(desk.gateway, ACTOR)
    assert (told.history_days, told.body_days, told.most_rows) == (1, 0, None)
    assert (told.pruned_at, told.deleted_at, told.deleted) == (None, None, None)
    await prune(desk.gateway, ACTOR)
    told = await retention.last(desk.gateway, ACTOR)
    assert told.pruned_at is not None and told.deleted is None
    await desk.accepted(await desk.webhook(), {"n": 1})
    await settle(desk)
    await later(desk, 2)
    desk.gateway.retention = RetentionPolicy(history_days=1, most_rows=5)
    await prune(desk.gateway, ACTOR)
    await later(desk, 1)
    await prune(desk.gateway, ACTOR)
    told = await retention.last(desk.gateway, ACTOR)
    assert told.most_rows == 5
    assert told.pruned_at is not None and told.deleted_at is not None and told.pruned_at > told.deleted_at
    assert told.deleted == {"invocations": 1, "bodies": 0, "rejected": 0}


async def test_sums_over_all_webhooks_go_too(desk: Desk) -> None:
    minute = int(desk.gateway.clock() // 60)
    await desk.store.volumes.count({("", minute, "accepted"): 3}, desk.gateway.clock())
    assert await count(desk, volumes) == 1
    await later(desk, 89)
    assert (await prune(desk.gateway, ACTOR))["volumes"] == 0
    await later(desk, 2)
    assert (await prune(desk.gateway, ACTOR))["volumes"] == 1
    assert await count(desk, volumes) == 0
