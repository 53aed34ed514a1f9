"""Deliveries of a webhook's own lane: found, claimed and brought forward apart from all others."""

from typing import Any

import pytest
from sqlalchemy import Connection

from postern.core.history.invocation import Entry
from postern.stores.deliveries import deliveries as rows
from postern.stores.store import Store
from stores.conftest import NOW, entry, recorded

LEASE = 30.0


def in_lane(lane: str, at: float = NOW) -> Entry:
    made = entry(at=at)
    assert made.delivery is not None
    made.delivery.lane = lane
    return made


async def test_a_claim_takes_from_one_lane(store: Store) -> None:
    await recorded(store, in_lane("wh_a"), in_lane("wh_b"), in_lane("wh_a"), entry())
    found = [await store.deliveries.claim(NOW, LEASE, 9, lane=lane) for lane in ("wh_a", "", "wh_b", "wh_c")]
    assert [{one.lane for one in claimed} for claimed in found] == [{"wh_a"}, {""}, {"wh_b"}, set()]
    assert [len(one) for one in found] == [2, 1, 1, 0]
    assert not await store.deliveries.any_due(NOW, "wh_a")
    assert await store.deliveries.any_due(NOW + LEASE, "wh_a")


async def test_lanes_are_told_with_the_time_of_their_first(store: Store) -> None:
    assert await store.deliveries.lanes() == {}
    await recorded(store, entry(), in_lane("wh_b", NOW + 5), in_lane("wh_a", NOW + 2), in_lane("wh_a"))
    assert await store.deliveries.lanes() == {"wh_a": NOW, "wh_b": NOW + 5}
    (one, _) = await store.deliveries.claim(NOW + 2, LEASE, 9, lane="wh_a")
    assert await store.deliveries.next_due("wh_a") == NOW + 2 + LEASE
    assert [await store.deliveries.next_due(lane) for lane in ("", "wh_c")] == [NOW, None]
    one.lane = ""
    await store.deliveries.again(one, NOW + 60, "away", NOW)
    row = await store.deliveries.get(one.key)
    assert row is not None and row.lane == "", "it waits where its webhook's deliveries wait now"


async def test_what_is_put_right_is_put_right_in_every_lane(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "MOST_CAUGHT_UP", 1)
    lanes = ["", "wh_a", "wh_b"]
    await recorded(store, *map(in_lane, lanes))
    for lane in lanes:
        await store.deliveries.claim(NOW, LEASE, 9, lane=lane)
    assert await store.deliveries.release(NOW + 1, LEASE) == 3
    for lane in lanes:
        (claimed,) = await store.deliveries.claim(NOW + 1, LEASE, 9, lane=lane)
        await store.deliveries.again(claimed, NOW + 3600, "away", NOW)
    assert await store.deliveries.bring_forward(NOW, NOW, [], 9, "wh_a") == 1
    assert await store.deliveries.lanes() == {"wh_a": NOW, "wh_b": NOW + 3600}
    assert await store.deliveries.backlog(NOW + 100) == (3, 100.0)
    assert await store.deliveries.backlog(NOW + 100, "wh_b") == (1, 100.0)
    assert await store.deliveries.catch_up(NOW - 86_400, LEASE, 3600.0) == 3


async def test_how_long_the_engine_is_away_is_not_told_by_another_lane(store: Store) -> None:
    await recorded(store, in_lane("wh_a"))
    (claimed,) = await store.deliveries.claim(NOW, LEASE, 9, lane="wh_a")
    for _ in range(2):
        await store.deliveries.again(claimed, NOW + 3600, "away", NOW)
        claimed.attempts += 1
    assert not await store.deliveries.tried_in_vain(NOW + 60)
    assert [[*one.values()] for one in (await store.incidents.waiting()).values()] == [[NOW]]


@pytest.mark.parametrize(
    "asked", [rows._CLAIM, rows._DUE_SIZES, rows._FIRST_OF_LANE, rows._FIRST_OF_EACH_LANE]
)
async def test_what_waits_in_other_lanes_is_not_looked_at(store: Store, asked: Any) -> None:
    if not store.database.is_sqlite:
        pytest.skip("Postgres chooses a plan by how many there are")
    compiled = asked.compile(dialect=store.database.readers.dialect)
    given = tuple(compiled.params[name] or 0 for name in compiled.positiontup or ())

    def explain(connection: Connection) -> list[str]:
        found = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {compiled}", given)
        return [str(row[3]) for row in found]

    plan = await store.database.read(explain)
    assert any("deliveries_due (lane" in step for step in plan), plan
    assert not any(step.startswith("SCAN deliveries") for step in plan), plan
