"""What recording promises, on every store."""

import asyncio

import pytest
from sqlalchemy import Connection, select

from postern.core.delivery import Started
from postern.core.invocation import StoreUnavailable
from postern.stores.store import Store
from postern.stores.tables import duplicate_keys
from stores.conftest import KEYS, NOW, entry

pytestmark = pytest.mark.anyio


async def test_what_was_recorded_is_read_back_as_it_was(store: Store) -> None:
    made = entry(path=b"/webhook/\x00\xff", body=b"\x00\x01\xff", trace=b"[1]")
    await store.record(made)
    found = await store.history.get(made.invocation.id)
    assert found is not None
    invocation, deliveries = found
    assert invocation == made.invocation
    assert [delivery.key for delivery in deliveries] == [f"{made.invocation.id}.1"]
    assert deliveries[0].fields == {"fieldOne": "x"}


async def test_of_many_with_one_key_in_one_commit_exactly_one_starts(store: Store) -> None:
    entries = [entry(key=b"k" * 32) for _ in range(50)]
    receipts = await asyncio.gather(*(store.record(one) for one in entries))
    firsts = [one for one, receipt in zip(entries, receipts, strict=True) if receipt.first is None]
    assert len(firsts) == 1
    assert {receipt.first for receipt in receipts} == {None, firsts[0].invocation.id}
    assert len(await store.deliveries.claim(NOW, 30, 100)) == 1


async def test_a_second_store_on_the_same_database_sees_the_duplicate(store: Store, store_url: str) -> None:
    other = Store(store_url, KEYS)
    await other.open()
    mine, theirs = [entry(key=bytes([n] * 32)) for n in range(20)], [entry(key=bytes([n] * 32)) for n in reversed(range(20))]
    receipts = await asyncio.gather(*(store.record(one) for one in mine), *(other.record(one) for one in theirs))
    await other.close()
    assert sum(receipt.first is None for receipt in receipts) == 20
    assert len(await store.deliveries.claim(NOW, 30, 100)) == 20


async def test_a_claim_that_has_expired_is_taken_over(store: Store) -> None:
    await store.record(entry(key=b"k" * 32))
    assert (await store.record(entry(key=b"k" * 32, at=NOW + 30))).first is not None
    assert (await store.record(entry(key=b"k" * 32, at=NOW + 61))).first is None


async def test_one_entry_that_no_store_can_take_leaves_its_neighbours_alone(store: Store) -> None:
    good, bad = entry(key=b"k" * 32), entry(key=b"k" * 32, webhook_id="wh_1")
    bad.invocation.id = None  # type: ignore[assignment]
    outcomes = await asyncio.gather(store.record(bad), store.record(good), return_exceptions=True)
    assert isinstance(outcomes[0], Exception)
    assert not isinstance(outcomes[1], BaseException)
    # It was second to the bad one for a moment, and is not once that is gone.
    assert outcomes[1].first is None
    assert good.invocation.outcome == "accepted"
    assert len(await store.deliveries.claim(NOW, 30, 100)) == 1


async def test_settling_many_at_once_settles_each(store: Store) -> None:
    for _ in range(30):
        await store.record(entry())
    claimed = await store.deliveries.claim(NOW, 30, 100)
    await asyncio.gather(
        *(store.deliveries.started(one, Started(2, ("Order look-up",)), NOW) for one in claimed[:10]),
        *(store.deliveries.again(one, NOW + 5, "away", NOW) for one in claimed[10:20]),
        *(store.deliveries.failed(one, "refused", NOW) for one in claimed[20:]),
    )
    rows = [await store.deliveries.get(one.key) for one in claimed]
    assert [(row.state, row.runs, row.error, row.attempts) for row in rows if row] == [
        *[("started", 2, "", 1)] * 10,
        *[("queued", None, "away", 1)] * 10,
        *[("failed", None, "refused", 1)] * 10,
    ]
    assert len(await store.deliveries.claim(NOW + 5, 30, 100)) == 10


async def test_two_processes_never_claim_the_same_delivery(store: Store, store_url: str) -> None:
    other = Store(store_url, KEYS)
    await other.open()
    await asyncio.gather(*(store.record(entry()) for _ in range(200)))
    claims = await asyncio.gather(*(one.deliveries.claim(NOW, 30, 20) for one in [store, other] * 6))
    await other.close()
    keys = [delivery.key for claimed in claims for delivery in claimed]
    assert len(keys) == len(set(keys)) == 200


async def test_a_job_that_refuses_undoes_itself_alone(store: Store) -> None:
    def refusing(connection: Connection) -> None:
        connection.execute(duplicate_keys.insert().values(webhook_id="wh_1", key=b"k" * 32, invocation_id="inv", expires_at=1))
        raise StoreUnavailable("no")

    made = entry()
    outcomes = await asyncio.gather(store.writer.write(refusing), store.record(made), return_exceptions=True)
    assert isinstance(outcomes[0], StoreUnavailable)
    assert await store.history.get(made.invocation.id) is not None
    assert await store.database.read(lambda connection: connection.execute(select(duplicate_keys)).all()) == []
