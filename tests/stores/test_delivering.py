"""Deliveries: each is claimed by one at a time, comes back when its claimer dies, and is answered once."""

import asyncio
from functools import partial

import pytest
from sqlalchemy import event

from postern.core.access.audit import AuditEntry
from postern.core.answer import WorkflowResponse
from postern.core.deliveries.delivery import DeliveryState, StartAgain, Started, delivery_key
from postern.core.history.invocation import Delivery, Entry
from postern.core.problems import Gone, Refused
from postern.stores.deliveries import deliveries
from postern.stores.sql import writer
from postern.stores.sql.wake import DUE
from postern.stores.store import Store
from stores.conftest import NOW, WEBHOOK, HeldUp, deletion, entry, recorded, webhook

LEASE = 30.0


async def all_of(store: Store, invocation_id: str) -> list[Delivery]:
    found = await store.history.get(invocation_id)
    assert found is not None
    return found.deliveries


async def only(store: Store, invocation_id: str) -> Delivery:
    (delivery,) = await all_of(store, invocation_id)
    return delivery


async def test_what_is_claimed_is_nobody_elses_until_the_lease_is_over(store: Store) -> None:
    ids = await recorded(store, *(entry() for _ in range(5)))
    claimed = await store.deliveries.claim(NOW, LEASE, 3)
    rest = await store.deliveries.claim(NOW, LEASE, 3)
    assert sorted(one.invocation_id for one in [*claimed, *rest]) == sorted(ids)
    assert len(claimed) == 3
    assert not await store.deliveries.any_due(NOW + 29)
    assert await store.deliveries.claim(NOW + 29, LEASE, 9) == []
    assert await store.deliveries.any_due(NOW + 30)
    assert len(await store.deliveries.claim(NOW + 30, LEASE, 9)) == 5


async def test_as_many_are_claimed_as_their_bodies_may_have_bytes_together_and_one_in_any_case(
    store: Store,
) -> None:
    await recorded(store, *(entry(body=b"x" * size) for size in (400, 400, 400, 5000)))
    claim = partial(store.deliveries.claim, NOW, LEASE, 9)
    assert [len(await claim(most_bytes)) for most_bytes in (800, 399, 4999)] == [2, 1, 1]
    assert await claim(1) == []


async def test_two_processes_never_claim_the_same(store: Store, second_store: Store) -> None:
    ids = await recorded(store, *(entry() for _ in range(200)))
    rounds = [(store, second_store)[number % 2].deliveries.claim(NOW, LEASE, 15) for number in range(20)]
    claimed = [one.invocation_id for batch in await asyncio.gather(*rounds) for one in batch]
    while batch := await store.deliveries.claim(NOW, LEASE, 100):
        claimed += [one.invocation_id for one in batch]
    assert sorted(claimed) == sorted(ids)


async def test_what_a_dead_process_had_claimed_can_be_released(store: Store) -> None:
    # The last one is backing off for longer than any lease: not claimed, so not released.
    await recorded(store, entry(), entry(), entry(at=NOW + 500))
    assert len(await store.deliveries.claim(NOW, LEASE, 9)) == 2
    assert await store.deliveries.release(NOW + 1, LEASE) == 2
    assert len(await store.deliveries.claim(NOW + 1, LEASE, 9)) == 2


async def test_a_postponed_delivery_comes_back_with_what_went_wrong(store: Store) -> None:
    (id,) = await recorded(store, entry())
    for attempt in range(1, 31):
        now = NOW + attempt * 100
        (claimed,) = await store.deliveries.claim(now, LEASE, 9)
        await store.deliveries.again(claimed, now + 50, f"down é {attempt}", now)
        assert not await store.deliveries.any_due(now + 49)
    current = await only(store, id)
    assert (current.state, current.attempts, current.error) == ("queued", 30, "down é 30")
    assert len(current.log) == 20
    assert current.log[-1]["detail"] == "down é 30"


async def test_what_another_process_has_claimed_is_not_brought_forward(
    store: Store, second_store: Store
) -> None:
    """It may be about to start it."""
    await recorded(store, entry())
    (claimed,) = await store.deliveries.claim(NOW, LEASE, 9)
    assert await second_store.deliveries.bring_forward(NOW, NOW, [], 9) == 0
    assert await second_store.deliveries.claim(NOW, LEASE, 9) == []
    await store.deliveries.again(claimed, NOW + 600, "connection refused", NOW)
    assert await second_store.deliveries.bring_forward(NOW, NOW, [], 9) == 1


async def test_other_workers_are_woken_for_what_is_released(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr(deliveries, "announce", lambda _, what: told.append(what))
    for state, woken in (("dropped", []), ("queued", [DUE])):
        await store.deliveries.unhold(WEBHOOK, state, NOW, 9)
        assert told == woken


async def test_replays_at_the_same_time_are_each_their_own(store: Store, second_store: Store) -> None:
    (id,) = await recorded(store, entry())
    both = [one.emissions for one in (store, second_store)]
    replays = [both[number % 2].replay(StartAgain(id, {}), NOW, "admin") for number in range(30)]
    made = await asyncio.gather(*replays)
    assert sorted(one.emission for one in made) == list(range(2, 32))
    assert [one.emission for one in await all_of(store, id)] == list(range(1, 32))


async def test_replays_in_opposite_orders_all_get_through(store: Store, second_store: Store) -> None:
    ids = await recorded(store, *(entry() for _ in range(10)))
    for _ in range(2):
        forth = [store.emissions.replay(StartAgain(id, {}), NOW, "admin") for id in ids]
        back = [second_store.emissions.replay(StartAgain(id, {}), NOW, "admin") for id in reversed(ids)]
        await asyncio.gather(*forth, *back)
    for id in ids:
        assert [one.emission for one in await all_of(store, id)] == list(range(1, 6))


NOTE = AuditEntry("aud_1", NOW, "owner", "admin", "rejected call admitted", "", {})


def admitted(rejected: Entry, state: DeliveryState) -> Entry:
    id = rejected.invocation.id
    return Entry(rejected.invocation, Delivery(delivery_key(id, 1), id, WEBHOOK, 1, state, 0, NOW, {}, NOW))


async def test_what_retention_has_taken_meanwhile_is_neither_replayed_nor_admitted(store: Store) -> None:
    gone, rejected = entry(), entry("rejected")
    await recorded(store, gone, rejected)
    (claimed,) = await store.deliveries.claim(NOW, LEASE, 9)
    await store.deliveries.failed(claimed, "over, so it may go", NOW)
    await store.retention.delete([gone.invocation.id, rejected.invocation.id])
    with pytest.raises(Gone):
        await store.emissions.replay(StartAgain(gone.invocation.id, {}), NOW, "admin", note=NOTE)
    with pytest.raises(Gone):
        await store.emissions.admit(admitted(rejected, "queued"), [b"event"], NOW + 9, NOTE)
    assert await store.deliveries.claim(NOW + 1, LEASE, 9) == []
    assert await store.audit.page(9) == []


async def test_a_call_admitted_while_its_hold_ends_does_not_wait_for_the_next_one(store: Store) -> None:
    await webhook(store)
    rejected = entry("rejected")
    await recorded(store, rejected)
    await store.emissions.admit(
        admitted(rejected, "held"), [b"event"], NOW + 9, NOTE
    )  # it was held when somebody looked
    (claimed,) = await store.deliveries.claim(NOW, LEASE, 9)
    assert claimed.invocation_id == rejected.invocation.id


# --- the synchronous response ----------------------------------------------------------------------------------------


def answer(text: bytes) -> WorkflowResponse:
    return WorkflowResponse(201, (("x-a", "1"),), text)


async def test_the_first_answer_wins(store: Store, second_store: Store) -> None:
    (id,) = await recorded(store, entry(deadline=NOW + 10))
    both = [one.slots for one in (store, second_store)]
    answers = [both[number % 2].respond(f"{id}.1", answer(b"%d" % number), NOW + 1) for number in range(10)]
    won = await asyncio.gather(*answers)
    assert won.count(True) == 1
    current = await only(store, id)
    assert current.response == answer(b"%d" % won.index(True))
    assert (current.answer_code, current.responded_at) == ("accepted", NOW + 1)


async def test_answers_to_many_that_come_together_each_hear_their_own(store: Store, held_up: HeldUp) -> None:
    ids = await recorded(store, *(entry(deadline=NOW + 10) for _ in range(5)))
    await store.slots.close_slot(f"{ids[2]}.1", "response_timeout")
    let_go = await held_up()  # so that they are one commit
    asked = (*reversed(ids), ids[0])
    answering = [store.slots.respond(f"{id}.1", answer(id.encode()), NOW + 1) for id in asked]
    await asyncio.sleep(0)
    await let_go()
    assert await asyncio.gather(*answering) == [True, True, False, True, True, False]
    for id in ids:
        assert (await only(store, id)).response == answer(id.encode())


async def test_a_start_is_written_down_with_the_answer_that_follows(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "SOON", 3600.0)
    (id,) = await recorded(store, entry(deadline=NOW + 10))
    (claimed,) = await store.deliveries.claim(NOW, LEASE, 9)
    commits: list[object] = []
    event.listen(store.database.writer, "commit", commits.append)
    starting = asyncio.create_task(store.deliveries.started(claimed, Started(1, ("a",)), NOW + 1))
    for _ in range(5):  # a turn of the loop hands over what is urgent
        await asyncio.sleep(0)
    assert await store.slots.respond(f"{id}.1", answer(b"first"), NOW + 1)
    await starting
    assert len(commits) == 1
    assert (await only(store, id)).state == "started"


async def test_a_late_answer_is_kept_and_does_not_win(store: Store) -> None:
    (id,) = await recorded(store, entry(deadline=NOW + 10))
    assert not await store.slots.respond(f"{id}.1", answer(b"late"), NOW + 10)
    assert await store.slots.close_slot(f"{id}.1", "response_timeout")
    current = await only(store, id)
    assert (current.answer_code, current.responded_at) == ("response_timeout", NOW + 10)
    assert current.response == answer(b"late")


async def test_after_the_caller_heard_something_else_an_answer_is_only_recorded(store: Store) -> None:
    (id,) = await recorded(store, entry(deadline=NOW + 10))
    assert await store.slots.close_slot(f"{id}.1", "completed")
    assert not await store.slots.respond(f"{id}.1", answer(b"late"), NOW + 1)
    assert not await store.slots.close_slot(f"{id}.1", "response_timeout")
    current = await only(store, id)
    assert (current.answer_code, current.response) == ("completed", answer(b"late"))


# --- webhooks --------------------------------------------------------------------------------------------------------


async def test_a_deleted_webhooks_code_is_never_given_out_again(store: Store) -> None:
    made = await webhook(store, code="the-code")
    assert await store.bin.delete(deletion(WEBHOOK), NOW + 1)
    assert not await store.bin.delete(deletion(WEBHOOK), NOW + 2)
    assert await store.webhooks.get(WEBHOOK) is None
    assert await store.webhooks.page(10) == []
    with pytest.raises(Refused, match="once had"):
        await webhook(store, "wh_2", made.short_code)
    assert await store.bin.purge(WEBHOOK)
    assert not await store.bin.purge(WEBHOOK)
    with pytest.raises(Refused, match="once had"):
        await webhook(store, "wh_2", made.short_code)
    changed = await store.webhooks.changed_since(0)
    assert (changed.stored, changed.unreadable, changed.deleted) == ([], [], [WEBHOOK])


async def test_names_of_deleted_webhooks_are_found_the_newest_first(store: Store) -> None:
    for number in range(4):
        await webhook(store, f"wh_{number}")
    for number in (1, 0, 2):
        await store.bin.delete(deletion(f"wh_{number}"), NOW)
    found = await store.webhooks.deleted_names(lambda name: name == "Orders", 2)
    assert list(found.items()) == [("wh_2", "Orders"), ("wh_1", "Orders")]
    assert await store.webhooks.deleted_names(lambda name: name == "orders", 2) == {}


async def test_of_two_changes_to_the_same_version_one_is_refused(store: Store, second_store: Store) -> None:
    made = await webhook(store)
    made.version = 2
    updating = [one.webhooks.update(made, 1, {}) for one in (store, second_store) * 2]
    done = await asyncio.gather(*updating)
    assert sorted(done) == [False, False, False, True]


async def test_what_was_tried_in_vain_is_known_to_every_process(store: Store, second_store: Store) -> None:
    await recorded(store, entry())
    (delivery,) = await store.deliveries.claim(NOW, LEASE, 9)
    assert not await second_store.deliveries.tried_in_vain(NOW + 60), "it is being tried for the first time"
    await store.deliveries.again(delivery, NOW + 600, "connection refused", NOW)
    assert await second_store.deliveries.tried_in_vain(NOW + 60)
    assert not await second_store.deliveries.tried_in_vain(NOW - 60), "it is too young"
    assert await second_store.deliveries.backlog(NOW + 400) == (1, 400.0), "another try is no start"
    (delivery,) = await store.deliveries.claim(NOW + 600, LEASE, 9)
    await store.deliveries.started(delivery, Started(1), NOW + 600)
    assert not await second_store.deliveries.tried_in_vain(NOW + 660)
    assert await second_store.deliveries.backlog(NOW + 660) == (0, 0.0)
