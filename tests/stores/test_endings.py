"""The answers that callers heard and the ends of runs, on both databases."""

from postern.core.deliveries.delivery import End, Started
from postern.core.history.invocation import AnswerHeard, Delivery, HistoryFilter
from postern.core.history.volume import answer_name
from postern.stores.store import Store
from stores.conftest import NOW, WEBHOOK, entry, recorded

LEASE = 60.0


async def started(store: Store, count: int, ask_at: float | None = NOW + 1) -> list[Delivery]:
    await recorded(store, *(entry() for _ in range(count)))
    claimed = await store.deliveries.claim(NOW, LEASE, count)
    for delivery in claimed:
        await store.deliveries.started(delivery, Started(1, ("flow",)), NOW, ask_at)
    return claimed


async def state(store: Store, delivery: Delivery) -> tuple[str, float | None, str, float | None]:
    now = await store.deliveries.get(delivery.key)
    assert now is not None
    return now.state, now.ended_at, now.error, now.ask_at


async def test_an_end_is_written_once_and_the_first_one_stays(store: Store) -> None:
    good, bad, other = await started(store, 3)
    ends = {good.key: End("completed", NOW + 2), bad.key: End("failed", NOW + 3, "no order")}
    assert await store.endings.note([], ends, {}, NOW + 4) == (set(), {good.key, bad.key}, set())
    assert await store.endings.note([], {bad.key: End("completed", NOW + 9)}, {}, NOW + 9) == (
        set(),
        set(),
        set(),
    )
    assert await state(store, good) == ("completed", NOW + 2, "", None)
    assert await state(store, bad) == ("failed", NOW + 3, "no order", None)
    assert await state(store, other) == ("started", None, "", NOW + 1)
    for status, delivery in (("completed", good), ("failed", bad), ("started", other)):
        page = await store.history.page(HistoryFilter(status=status), 10)  # type: ignore[arg-type]
        assert [row.invocation.id for row in page.rows] == [delivery.invocation_id]
    minute = int(NOW // 60)
    volume = (await store.volumes.buckets(WEBHOOK, minute, minute + 1, 1))[minute]
    assert volume.ends.by_name == {"completed": 1, "failed": 1}
    assert volume.calls.total == 3


async def test_who_is_due_is_asked_about_by_one_at_a_time(store: Store, second_store: Store) -> None:
    first, second, third = await started(store, 3)
    assert await store.endings.claim_to_ask(NOW, LEASE, 10) == {}
    claimed = await store.endings.claim_to_ask(NOW + 1, LEASE, 2)
    rest = await second_store.endings.claim_to_ask(NOW + 1, LEASE, 10)
    assert (len(claimed), len(rest)) == (2, 1)
    assert claimed | rest == dict.fromkeys([first.key, second.key, third.key], ("started", NOW))
    await store.endings.ask_again({first.key: ("started", NOW + 100), second.key: ("lost", NOW + 200)})
    assert set(await store.endings.claim_to_ask(NOW + 99, LEASE, 10)) == {third.key}
    assert set(await store.endings.claim_to_ask(NOW + 100, LEASE, 10)) == {first.key}
    # Which ended meanwhile is not brought back by what was asked before.
    await store.endings.note([], {first.key: End("completed", NOW)}, {}, NOW)
    await store.endings.ask_again({first.key: ("lost", NOW + 300)})
    assert [(await state(store, one))[0] for one in (first, second)] == ["completed", "lost"]
    # And who is lost may end yet.
    assert await store.endings.lost() == 1
    await store.endings.note([], {second.key: End("failed", NOW, "no stock")}, {}, NOW)
    assert (await state(store, second))[0] == "failed"
    assert await store.endings.lost() == 0


async def test_what_callers_heard_is_found_by_it(store: Store) -> None:
    waiting, rejected = [entry(deadline=NOW + 5) for _ in range(4)], entry("rejected")
    for one in waiting:
        one.invocation.status = 0
    rejected.invocation.status = 401
    ids = await recorded(store, *waiting, rejected)
    heard = [
        AnswerHeard(ids[0], 504, NOW + 5, True),
        AnswerHeard(ids[1], 201, NOW + 1, True),
        AnswerHeard(ids[2], 502, NOW + 1, False),
    ]
    await store.endings.note(heard, {}, {(WEBHOOK, answer_name(504), 8): 1}, NOW)
    await store.endings.note([AnswerHeard(ids[0], 200, NOW, True)], {}, {}, NOW)  # it is said once

    async def found(answer: str) -> set[int]:
        page = await store.history.page(HistoryFilter(answer=answer), 10)
        return {ids.index(row.invocation.id) for row in page.rows}

    assert (await store.history.get(ids[0])).answered == heard[0]  # type: ignore[union-attr]
    assert await found("504") == await found("5xx") == {0}
    assert await found("2xx") == {1}
    assert await found("gone") == {2}
    assert await found("4xx") == {4}
    assert await found("502") == set()
    minute = int(NOW // 60)
    assert (await store.volumes.buckets(WEBHOOK, minute, minute + 1, 1))[minute].answers.by_name == {"504": 1}

    await store.endings.note([AnswerHeard(ids[4], 401, NOW, False)], {}, {}, NOW)
    assert await found("gone") == {2, 4}
    await store.retention.delete([ids[4]])
    assert (
        await store.database.read(lambda c: c.exec_driver_sql("SELECT count(*) FROM answers").scalar())
    ) == 3
