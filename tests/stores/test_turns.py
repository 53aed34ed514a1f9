"""Turns, in the rows: whatever is killed half-way and whoever claims, no more are at work than may be, each value goes on in its
order, and of a burst the newest is started and nothing is lost."""

import asyncio
import sqlite3
from concurrent.futures import Future
from pathlib import Path
from random import Random
from typing import Any

import pytest
from sqlalchemy.dialects.sqlite.base import SQLiteDialect as sqlite_dialect

import postern
from postern.core.deliveries.delivery import End, Started
from postern.core.history.invocation import Delivery, Entry
from postern.core.webhooks.turns import turns
from postern.stores.deliveries import turns as rows
from postern.stores.store import Store
from stores.conftest import NOW, WEBHOOK, entry, opened, recorded, waiting_for_locks
from support.waiting import PATIENCE, wait_until

LEASE = 30.0
FIRST_TABLES = Path(postern.__file__).parent / "stores/sql/migrations/versions/0010_first_tables.sqlite.sql"


def in_turn(turn: str, at: float = NOW) -> Entry:
    made = entry(at=at)
    assert made.delivery is not None
    made.delivery.lane, made.delivery.turn = WEBHOOK, turn
    return made


class Ledger:
    """What an engine knows, and what callers were told, beside gateways that die at any moment."""

    def __init__(self, stores: list[Store], seed: int, **given: float | None) -> None:
        self.stores, self.chance, self.now = stores, Random(seed), NOW
        self.turns = turns(**({"at_once": None, "by": None, "quiet": None, "longest": None} | given))  # type: ignore[arg-type]
        self.accepted: dict[str, list[str]] = {}
        self.came: dict[str, float] = {}
        self.turn_of: dict[str, str] = {}
        self.running: set[str] = set()
        self.over: set[str] = set()
        self.refused: set[str] = set()
        self.wrong: list[str] = []

    async def accept(self) -> None:
        """Calls by any gateway, each after the answer to the one before."""
        turns = self.chance.sample("abcd", self.chance.randint(1, 2)) if self.turns.in_order else ["a"]
        for turn in turns:
            made = in_turn(turn if self.turns.in_order else "", self.now)
            (one,) = await recorded(self.chance.choice(self.stores), made)
            key = f"{one}.1"
            self.accepted.setdefault(turn, []).append(key)
            self.turn_of[key], self.came[key] = turn, self.now

    async def claim(self) -> None:
        store, most = self.chance.choice(self.stores), self.chance.randint(1, 5)
        claimed = await store.turns.claim(WEBHOOK, self.turns, True, self.now, LEASE, most, 1 << 20)
        for one in claimed:
            if self.turns.quiet is not None:
                if self.chance.random() < 0.1:
                    continue  # killed before the older ones are superseded
                while await store.turns.supersede(one):
                    pass
            await self.start(store, one)

    async def start(self, store: Store, one: Delivery) -> None:
        how = self.chance.choices(["killed", "taken", "lost", "away", "refused"], [1, 8, 2, 2, 1])[0]
        is_known = one.key in self.running | self.over
        if how == "away":
            await store.deliveries.again(one, self.now + self.chance.randint(1, 20), "away", self.now)
        elif how == "refused" and not is_known:
            self.refused.add(one.key)
            await store.deliveries.failed(one, "refused", self.now)
        elif how in ("taken", "lost"):
            if not is_known:
                self.began(one)
            if how == "taken":
                await store.deliveries.started(one, Started(1), self.now, self.now + 5)

    def began(self, one: Delivery) -> None:
        self.running.add(one.key)
        turn = self.turn_of[one.key]
        if self.turns.at_once is not None and len(self.running) > self.turns.at_once:
            self.wrong.append(f"{len(self.running)} at once")
        if not self.turns.in_order:
            return
        if sum(self.turn_of[key] == turn for key in self.running) > 1:
            self.wrong.append(f"two of {turn} at work")
        line = self.accepted[turn]
        place = line.index(one.key)
        if self.turns.quiet is None:
            left = [key for key in line[:place] if key not in self.over | self.refused]
            if left:
                self.wrong.append(f"{one.key} before {len(left)} others of {turn}")
        elif any(key in self.running | self.over for key in line[place + 1 :]):
            self.wrong.append(f"{one.key} after a newer one of {turn}")

    async def ends(self) -> None:
        if self.running:
            key = self.chance.choice(sorted(self.running))
            # Only what was written down can end: a gateway that was killed hears of it later.
            store = self.chance.choice(self.stores)
            written = await store.endings.note([], {key: End("completed", self.now)}, {}, self.now)
            if key in written.now:
                self.running.remove(key)
                self.over.add(key)

    async def goes_on(self, count: int) -> None:
        for _ in range(count):
            does = self.chance.choices([self.accept, self.claim, self.ends, self.passes], [5, 6, 5, 3])[0]
            await does()

    async def passes(self) -> None:
        self.now += self.chance.choice([1.0, 5.0, 31.0])

    async def all_is_over(self) -> None:
        while self.running or any(
            one.state in ("queued", "started") for one in (await self.states()).values()
        ):
            self.now += 31.0
            await self.claim()
            for _ in range(len(self.running)):
                await self.ends()

    async def states(self) -> dict[str, Delivery]:
        found = [await self.stores[0].deliveries.get(key) for line in self.accepted.values() for key in line]
        return {one.key: one for one in found if one is not None}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("given", [{"by": "x"}, {"at_once": 2}, {"by": "x", "at_once": 2}], ids=str)
async def test_order_and_number_hold_under_kills(
    store: Store, second_store: Store, seed: int, given: dict[str, float | None]
) -> None:
    ledger = Ledger([store, second_store], seed, **given)
    async with asyncio.timeout(PATIENCE):
        await ledger.goes_on(80)
        await ledger.all_is_over()
    assert ledger.wrong == []
    states = await ledger.states()
    assert {key for key, one in states.items() if one.state == "completed"} == ledger.over
    assert {key for key, one in states.items() if one.state == "failed"} == ledger.refused
    assert len(ledger.over | ledger.refused) == len(states)


@pytest.mark.parametrize("seed", range(3))
async def test_of_a_burst_the_newest_is_started_and_the_others_are_superseded_by_it(
    store: Store, second_store: Store, seed: int
) -> None:
    ledger = Ledger([store, second_store], seed, by="x", quiet=4.0, longest=20.0)
    async with asyncio.timeout(PATIENCE):
        await ledger.goes_on(80)
        await ledger.all_is_over()
    assert ledger.wrong == []
    states = await ledger.states()
    for line in ledger.accepted.values():
        for place, key in enumerate(line):
            one = states[key]
            assert one.state in ("completed", "failed", "superseded")
            assert (one.superseded_by in line[place + 1 :]) == (one.state == "superseded")
        assert states[line[-1]].state != "superseded"
    assert any(one.state == "superseded" for one in states.values())


async def test_places_do_not_follow_the_clock(store: Store, second_store: Store) -> None:
    by = turns(None, "x", None, None)
    ids = [
        (await recorded(one, in_turn("a", NOW + at)))[0]
        for one, at in ((store, 0), (second_store, -7200), (store, -3600))
    ]
    for expected in ids:
        (one,) = await second_store.turns.claim(WEBHOOK, by, False, NOW, LEASE, 5, 1 << 20)
        assert one.invocation_id == expected
        await store.deliveries.started(one, Started(1), NOW)


async def test_several_of_one_commit_keep_their_order(store: Store) -> None:
    ids = await recorded(store, *(in_turn(turn) for turn in "abaab"))
    places = [one.place for id in ids if (one := await store.deliveries.get(f"{id}.1"))]
    assert places == [1, 1, 2, 3, 2]


def test_no_claim_goes_through_all_deliveries() -> None:
    """The table has those of the whole history, too."""
    database = sqlite3.connect(":memory:")
    database.executescript(FIRST_TABLES.read_text("utf-8"))
    for statement in (rows._RAN_OUT, rows._NO_TURN, rows._COUNT, rows._ANY, rows._HEADS, rows._NEWEST):
        text = str(statement.compile(dialect=sqlite_dialect()))
        plan = database.execute(f"EXPLAIN QUERY PLAN {text}", [1] * text.count("?")).fetchall()
        found = [one[3] for one in plan if one[3].startswith(("SCAN", "SEARCH")) and "ends" not in one[3]]
        assert all(
            "deliveries_in_turn" in one or "deliveries_at_work" in one
            for one in found
            if "invocations" not in one
        ), found
    database.close()


async def test_who_was_given_up_in_turn_is_found_by_the_moment(store: Store) -> None:
    given_up, earlier, elsewhere, started, _ = await recorded(
        store, in_turn("a"), in_turn("b"), entry(), in_turn("c"), in_turn("d")
    )
    for one in await store.turns.claim(WEBHOOK, turns(None, "x", None, None), True, NOW, LEASE, 9, 1 << 20):
        if one.invocation_id == started:
            await store.deliveries.started(one, Started(1), NOW, None)
        elif one.invocation_id in (given_up, earlier):
            await store.deliveries.failed(one, "refused", NOW + 50 * (one.invocation_id == given_up))
    for one in await store.deliveries.claim(NOW, LEASE, 9, 1 << 20, ""):
        await store.deliveries.failed(one, "refused", NOW + 50)
    assert elsewhere and await store.incidents.passed_over(NOW + 20) == {WEBHOOK: {given_up: NOW + 50}}


async def test_whose_turn_it_is_two_processes_find_out_one_after_the_other(
    migrated_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else each starts the newest that it sees, and two of one turn are at work."""
    loop, begun, find = asyncio.get_running_loop(), list[Future[int]](), rows._next

    def look(*given: Any) -> Any:
        found = find(*given)
        if not begun:
            begun.append(asyncio.run_coroutine_threadsafe(newer(), loop))
            wait_until(lambda: begun[0].done() or waiting_for_locks(migrated_url))
        return found

    async def newer() -> int:
        await recorded(other, in_turn("a"))
        return await claim(other)

    async def claim(store: Store) -> int:
        newest = turns(None, "x", 1.0, 9.0)
        return len(await store.turns.claim(WEBHOOK, newest, True, NOW + 60, LEASE, 9, 1 << 20))

    monkeypatch.setattr(rows, "_next", look)
    async with opened(migrated_url) as store, opened(migrated_url) as other:
        await recorded(store, in_turn("a"))
        assert (await claim(store), await asyncio.wrap_future(begun[0])) == (1, 0)
