"""A search looks through bodies: it takes as long as they are large, and nobody else waits for it."""

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest
from sqlalchemy import Connection, text

from postern.core.history.invocation import HistoryFilter
from postern.core.problems import Refused
from postern.stores.history import looking
from postern.stores.sql.database import MOST_SEARCHES, SEARCHERS
from postern.stores.store import Store
from stores.conftest import entry, opened, recorded
from support.refusals import refused

ENDLESS = {
    "sqlite": "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT max(n) FROM c",
    "postgresql": "SELECT pg_sleep(3600)",
}
SEARCH = HistoryFilter(search="needle")


@pytest.fixture
async def store(url: str) -> AsyncIterator[Store]:
    async with opened(url) as store:
        yield store


def endless(started: threading.Semaphore) -> object:
    def query(connection: Connection) -> object:
        started.release()
        return connection.execute(text(ENDLESS[connection.dialect.name])).all()

    return query


async def until(semaphore: threading.Semaphore) -> None:
    while not semaphore.acquire(blocking=False):
        await asyncio.sleep(0.01)


async def test_while_searches_run_everything_else_is_read_and_written(store: Store) -> None:
    started = threading.Semaphore(0)
    running = [asyncio.create_task(store.database.search(endless(started))) for _ in range(SEARCHERS)]  # type: ignore[arg-type]
    for _ in running:
        await until(started)
    search = asyncio.create_task(store.history.page(SEARCH, 10))
    (first,) = await recorded(store, entry(body=b'{"a": "needle"}'))
    assert await store.history.get(first) is not None
    assert len((await store.history.page(HistoryFilter(), 10)).rows) == 1
    assert not search.done(), "a search takes its turn among searches"
    for one in running:
        one.cancel()  # whoever asked has left: the search ends, or the next one would never run
    assert [row.invocation.id for row in (await search).rows] == [first]


async def test_only_so_many_searches_wait(store: Store) -> None:
    started = threading.Semaphore(0)
    running = [
        asyncio.create_task(store.database.search(endless(started)))  # type: ignore[arg-type]
        for _ in range(MOST_SEARCHES)
    ]
    await until(started)
    refusal = await refused(store.history.page(SEARCH, 10))
    assert (refusal.code, refusal.retry_after) == ("rate_limited", 5)
    for one in running:
        one.cancel()
    while True:  # each ends by itself
        try:
            assert (await store.history.page(SEARCH, 10)).rows == []
            break
        except Refused:
            await asyncio.sleep(0.01)


async def test_a_search_that_takes_too_long_is_ended_and_says_what_to_do(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("postern.stores.sql.database.LONGEST_SEARCH", 0.2)
    with pytest.raises(Refused, match="narrow it"):
        await store.database.search(endless(threading.Semaphore(0)))  # type: ignore[arg-type]


async def test_one_look_of_a_search_reads_a_bounded_amount_of_bodies(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looking, "SEARCHED_BYTES", 2500)
    ids = await recorded(store, *(entry(body=b"x" * 1000) for _ in range(4)), entry(body=b"needle" * 100))
    looked, before = 0, None
    found = []
    while True:
        page = await store.history.page(SEARCH, 10, before)
        found += [row.invocation.id for row in page.rows]
        looked, before = looked + 1, page.next_before
        if before is None:
            break
    assert (found, looked) == ([ids[-1]], 2)
