"""Recording: what arrives together is committed together, what cannot be stored harms nobody else, duplicates
are settled once."""

import asyncio
import threading

import pytest
from sqlalchemy import Table, event, func, select

from postern.core.history.invocation import HistoryFilter, StoreUnavailable
from postern.stores.calls import claims
from postern.stores.calls.claims import AT_ONCE, holders_of
from postern.stores.sql import writer
from postern.stores.sql.tables import deliveries, duplicate_keys, invocations
from postern.stores.store import Store
from stores.conftest import NOW, WEBHOOK, HeldUp, entry, opened, recorded, webhook
from support.recording import kept
from support.waiting import PATIENCE


async def count(store: Store, table: Table) -> int:
    counting = select(func.count()).select_from(table)
    return int(await store.database.read(lambda connection: connection.scalar(counting)) or 0)


async def test_what_arrives_during_a_commit_shares_the_next_one(store: Store, held_up: HeldUp) -> None:
    commits = []
    event.listen(store.database.writer, "commit", commits.append)
    let_go = await held_up()
    recording = [asyncio.create_task(kept(store, entry())) for _ in range(500)]
    await asyncio.sleep(0)
    assert store.writer.waiting == 501
    await let_go()
    await asyncio.gather(*recording)
    assert len(commits) == 2
    assert await count(store, invocations) == await count(store, deliveries) == 500


async def test_nothing_is_acknowledged_before_its_commit(store: Store) -> None:
    committing, go_on = threading.Event(), threading.Event()

    def commit(_: object) -> None:
        committing.set()
        go_on.wait(PATIENCE)

    event.listen(store.database.writer, "commit", commit)
    recording = asyncio.create_task(kept(store, entry()))
    assert await asyncio.to_thread(committing.wait, PATIENCE)
    await asyncio.sleep(0)  # what has been told by now is heard
    await asyncio.sleep(0)
    acknowledged = recording.done()
    go_on.set()
    await recording
    assert not acknowledged


@pytest.mark.parametrize(
    "poison",
    [
        {"detail": "a \x00 in text"},
        {"detail": "half a \ud800 pair"},
        {"body_size": 10**30},
        {"status": 10**6},
        {"detail": None},
        {"headers": object()},
        {"address": "x" * 500},
    ],
    ids=["NUL", "lone surrogate", "huge number", "number too large", "nothing", "an object", "too long"],
)
async def test_a_call_that_no_store_can_take_harms_no_neighbour(
    store: Store, held_up: HeldUp, poison: dict[str, object]
) -> None:
    entries = [entry(key=b"same" if 2 <= number <= 4 else None) for number in range(6)]
    for name, value in poison.items():
        setattr(entries[2].invocation, name, value)
    let_go = await held_up()
    recording = [asyncio.create_task(kept(store, one)) for one in entries]
    await asyncio.sleep(0)
    await let_go()
    results = await asyncio.gather(*recording, return_exceptions=True)
    asked = select(invocations.c.id)
    stored = set(await store.database.read(lambda connection: connection.execute(asked).scalars().all()))
    for one, receipt in zip(entries, results, strict=True):
        # Stored or refused; and whatever it was, its caller is told to come again and hears no 500.
        assert (one.invocation.id in stored) == (not isinstance(receipt, StoreUnavailable))
        assert not isinstance(receipt, Exception) or isinstance(receipt, StoreUnavailable)
    assert len(stored) >= 5
    same = [one.invocation.id for one in entries[2:5] if one.invocation.id in stored]
    found = [receipt.first for receipt in results[2:5] if not isinstance(receipt, BaseException)]
    assert found == [None, *same[:1] * (len(same) - 1)], "the first that was stored is the first of its key"
    assert await count(store, deliveries) == len(stored) - len(same) + 1


async def test_a_failing_write_is_undone_alone(store: Store, held_up: HeldUp) -> None:
    def fails(_: object) -> None:
        raise LookupError("of its own")

    let_go = await held_up()
    recording = asyncio.create_task(kept(store, entry()))
    failing = asyncio.create_task(store.writer.write(fails))
    fine = asyncio.create_task(store.writer.write(lambda connection: 7))
    await let_go()
    await recording
    with pytest.raises(LookupError):
        await failing
    assert await fine == 7
    assert await count(store, invocations) == 1


@pytest.mark.parametrize("limit", ["MOST_WAITING", "MOST_BYTES"])
async def test_when_too_much_waits_calls_are_rejected_and_nothing_acknowledged_is_lost(
    store: Store, held_up: HeldUp, limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, limit, {"MOST_WAITING": 50, "MOST_BYTES": 50 * 3000}[limit])
    let_go = await held_up()
    recording = [asyncio.create_task(kept(store, entry(body=b"x" * 1000))) for _ in range(200)]
    await asyncio.sleep(0)
    refused = [task for task in recording if task.done() and isinstance(task.exception(), StoreUnavailable)]
    assert len(refused) in (150, 151)
    await let_go()
    results = await asyncio.gather(*recording, return_exceptions=True)
    taken = [one for one in results if not isinstance(one, Exception)]
    assert await count(store, invocations) == len(taken) == 200 - len(refused)
    for _ in range(5):  # there is room again, and each call of 20 elements gives back what it takes
        call = entry()
        call.others = tuple(entry(body=b"x" * 1000) for _ in range(20))
        await recorded(store, call)


async def test_what_waits_when_the_store_closes_is_written_and_what_comes_later_is_refused(url: str) -> None:
    async with opened(url) as store:
        recording = [asyncio.create_task(kept(store, entry())) for _ in range(300)]
        await asyncio.sleep(0)
        await store.writer.close()
        await asyncio.gather(*recording)
        with pytest.raises(StoreUnavailable):
            await kept(store, entry())
        assert await count(store, invocations) == 300


# --- duplicates ------------------------------------------------------------------------------------------------------


async def firsts(store: Store, *keys: bytes, at: float = NOW) -> tuple[list[str], list[str | None]]:
    entries = [entry(key=key, at=at) for key in keys]
    receipts = await asyncio.gather(*(kept(store, one) for one in entries))
    return [one.invocation.id for one in entries], [receipt.first for receipt in receipts]


async def test_in_one_commit_the_first_of_a_key_wins(store: Store, held_up: HeldUp) -> None:
    let_go = await held_up()
    asking = asyncio.create_task(firsts(store, b"a", b"a", b"b", b"a"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert store.writer.waiting == 5
    await let_go()
    ids, results = await asking
    assert results == [None, ids[0], None, ids[0]]
    assert await count(store, deliveries) == 2
    duplicate = (await store.history.page(HistoryFilter(status="duplicate"), 10)).rows
    assert [row.invocation.duplicate_of for row in duplicate] == [ids[0], ids[0]]


async def test_later_ones_follow_the_first(store: Store) -> None:
    (first,), _ = await firsts(store, b"a")
    for _ in range(2):
        assert (await firsts(store, b"a", b"a"))[1] == [first, first]


async def test_a_key_can_be_used_again_when_its_time_is_over(store: Store) -> None:
    (first,), _ = await firsts(store, b"a")
    assert (await firsts(store, b"a", at=NOW + 59))[1] == [first]
    (second,), results = await firsts(store, b"a", at=NOW + 61)
    assert results == [None]
    assert (await firsts(store, b"a", at=NOW + 62))[1] == [second]


async def test_in_one_commit_new_keys_live_ones_and_those_that_are_over_are_told_apart(
    store: Store, held_up: HeldUp
) -> None:
    await firsts(store, b"over")
    (live,), _ = await firsts(store, b"live", at=NOW + 50)
    let_go = await held_up()
    asking = asyncio.create_task(firsts(store, b"new", b"over", b"live", b"over", b"new", at=NOW + 61))
    await asyncio.sleep(0)
    await let_go()
    ids, results = await asking
    assert results == [None, None, live, ids[1], ids[0]]
    assert (await firsts(store, b"over", b"live", b"new", at=NOW + 62))[1] == [ids[1], live, ids[0]]


async def test_more_keys_than_one_statement_takes_come_again(store: Store) -> None:
    """An array brings a thousand elements, and each has a key."""
    keys = [b"key %d" % number for number in range(2 * AT_ONCE + 3)]

    async def array(at: float) -> tuple[list[str], str | None]:
        one, *others = (entry(key=key, at=at) for key in keys)
        one.others = others
        return [each.invocation.id for each in (one, *others)], (await kept(store, one)).first

    ids, first = await array(NOW)
    assert first is None
    assert (await array(NOW + 1))[1] == ids[0]
    assert await count(store, deliveries) == len(keys)
    assert (await array(NOW + 61))[1] is None
    assert await count(store, deliveries) == 2 * len(keys)
    assert await count(store, duplicate_keys) == len(keys)


async def test_new_keys_cost_no_look_up(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_up: list[int] = []
    monkeypatch.setattr(
        claims, "holders_of", lambda at, keys: looked_up.append(len(keys)) or holders_of(at, keys)
    )
    await firsts(store, *(b"key %d" % number for number in range(70)))
    assert not looked_up
    await firsts(store, b"key 1")
    assert looked_up == [1]


async def test_webhooks_do_not_share_keys(store: Store) -> None:
    await recorded(store, entry(key=b"a"))
    assert (await kept(store, entry(key=b"a", webhook="wh_2"))).first is None


async def test_two_processes_agree_on_who_was_first(store: Store, second_store: Store) -> None:
    keys = [b"key %d" % number for number in range(40)]
    both = await asyncio.gather(firsts(store, *keys), firsts(second_store, *reversed(keys)))
    mine, theirs = both[0], (both[1][0][::-1], both[1][1][::-1])
    for place in range(40):
        won_here, won_there = mine[1][place] is None, theirs[1][place] is None
        assert won_here != won_there
        assert mine[1][place] == (None if won_here else theirs[0][place])
        assert theirs[1][place] == (None if won_there else mine[0][place])
    assert await count(store, deliveries) == await count(store, duplicate_keys) == 40


# --- counts ----------------------------------------------------------------------------------------------------------


async def test_counts_add_up_whatever_process_counted(store: Store, second_store: Store) -> None:
    await webhook(store)
    accepted = [entry(secret="sec_1", at=NOW + number) for number in range(30)]
    how = {"code": "credential_mismatch", "duration_us": 2_000_000, "at": NOW + 61}
    rejected = [entry("rejected", **how) for _ in range(12)]  # type: ignore[arg-type]
    again = [entry(key=b"same", at=NOW) for _ in range(5)]
    mixed = [one for group in zip(accepted[:5], rejected[:5], again, strict=True) for one in group]
    mixed += accepted[5:] + rejected[5:]
    await asyncio.gather(*(kept((store, second_store)[number % 2], one) for number, one in enumerate(mixed)))
    tallies = (await store.webhooks.tallies([WEBHOOK, "wh_none"]))[WEBHOOK]
    assert {name: tally.count for name, tally in tallies.items()} == {"calls": 47, "secret:sec_1": 30}
    assert tallies["calls"].last_at == NOW + 61
    minute = int(NOW // 60)
    buckets = await store.volumes.buckets(WEBHOOK, minute, minute + 10, 1)
    assert {first - minute: volume.calls.by_name for first, volume in buckets.items()} == {
        0: {"accepted": 31, "duplicate": 4},
        1: {"credential_mismatch": 12},
    }
    assert await count(store, invocations) == sum(volume.calls.total for volume in buckets.values())
