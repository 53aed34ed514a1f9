"""What a call costs on Postgres while history grows: `python -m bench.postgres_rows [rows …]`, 5,000,000
unless told.

The first rows are made by the server itself, two a second, up to now; what is measured goes through the
store, as calls do. Each figure is the best of several: on a machine that others use too, it is the one that
says what the work itself costs.
"""

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

from sqlalchemy import text

from bench.rooms import KEYS, durable_postgres, entry, keep, kept, table
from postern.core.deliveries.delivery import Started
from postern.core.history.invocation import HistoryFilter
from postern.identity import first_id_at
from postern.stores.sql import schema
from postern.stores.store import Store

WEBHOOKS = 200
APART_MS = 500
WAITING = 5_000
MINUTES_OF_A_DAY = 1440

FILL = """
INSERT INTO invocations SELECT 'inv_' || lpad(to_hex(CAST(:began AS bigint) + n * 500), 12, '0') || substr(md5(n::text), 1, 20),
  'wh_' || (n % CAST(:webhooks AS bigint)), CAST(:began AS bigint) + n * 500, CASE WHEN n / 200 % 20 = 0 THEN 'rejected' ELSE 'accepted' END,
  CASE WHEN n / 200 % 20 = 0 THEN 'credential_mismatch' ELSE 'accepted' END, 200, 1, 'POST', '/webhook/abcdefghijklmnopqrstuv', '',
  decode(repeat('5b5d', 150), 'hex'), 400, '203.0.113.9', 300, 'main', '', decode(repeat('5b5d', 100), 'hex'), NULL,
  decode(repeat('7b7d', 200), 'hex') FROM generate_series(CAST(:first AS bigint), CAST(:last AS bigint)) n
"""
DELIVER = """
INSERT INTO deliveries (key, invocation_id, webhook_id, emission, state, attempts, next_at, fields, created_at, started_at, runs)
SELECT id || '.1', id, webhook_id, 1, 'started', 1, received_at, '{}', received_at, received_at, 1 FROM invocations
WHERE id >= :first AND id < :last AND outcome = 'accepted'
"""
COUNT = """
INSERT INTO volumes (webhook_id, minute, code, shard, calls, within_5)
SELECT webhook_id, received_at / 60000, code, 1023, count(*), count(*) FROM invocations
WHERE id >= :first AND id < :last GROUP BY 1, 2, 3
ON CONFLICT (webhook_id, minute, code, shard) DO UPDATE SET calls = volumes.calls + excluded.calls
"""
NAME = """
INSERT INTO webhooks SELECT 'wh_' || n, 'code_' || n, 'Orders ' || n, true, false, '{}', 1, 1, 0, 0 FROM generate_series(0, :webhooks - 1) n
"""


async def main(sizes: list[int]) -> None:
    with durable_postgres() as url:
        schema.prepare(url, migrates=True)
        store = Store(url, KEYS)
        await store.open()
        with store.database.writer.begin() as connection:
            connection.execute(text(NAME), {"webhooks": WEBHOOKS})
        began = int(time.time() * 1000) - max(sizes) * APART_MS
        columns: dict[str, dict[str, float]] = {}
        there = 0
        for size in sizes:
            while there < size:
                step = min(100_000, size - there)
                fill(store, began, there + 1, there + step)
                there += step
            with store.database.writer.connect() as connection:
                connection = connection.execution_options(isolation_level="AUTOCOMMIT")
                connection.execute(text("SET statement_timeout = 0"))
                connection.execute(text("VACUUM ANALYZE"))
                connection.execute(text("SET statement_timeout = '10s'"))
            columns[f"{size:,} rows"] = await measured(store, began, size)
            print(as_text(columns), flush=True)
        await store.close()
    keep("A long history on Postgres", "milliseconds, best of several.", as_text(columns))


def as_text(columns: dict[str, dict[str, float]]) -> str:
    first, last = next(iter(columns.values())), next(reversed(columns.values()))
    rows = [
        [name, *(f"{column[name]:.1f}" for column in columns.values()), f"{last[name] / first[name]:.1f}"]
        for name in last
    ]
    return table(["ms", *columns, "times"], rows)


def fill(store: Store, began: int, first: int, last: int) -> None:
    within = {
        "first": first_id_at("inv", (began + first * APART_MS) / 1000),
        "last": first_id_at("inv", (began + (last + 1) * APART_MS) / 1000),
    }
    with store.database.writer.begin() as connection:
        connection.execute(text("SET LOCAL statement_timeout = 0"))
        connection.execute(text(FILL), {"began": began, "first": first, "last": last, "webhooks": WEBHOOKS})
        connection.execute(text(DELIVER), within)
        connection.execute(text(COUNT), within)


async def measured(store: Store, began: int, rows: int) -> dict[str, float]:
    now = time.time()
    claimed: list[Any] = []
    turn = iter(range(WEBHOOKS))

    async def record(count: int = 100) -> None:
        await asyncio.gather(
            *(kept(store, entry(at=now, webhook=f"wh_{n % WEBHOOKS}")) for n in range(count))
        )

    async def claim() -> None:
        claimed.append(await store.deliveries.claim(now + 1, 30, 100))
        assert len(claimed[-1]) == 100

    async def settle() -> None:
        await asyncio.gather(*(store.deliveries.started(one, Started(1), now) for one in claimed.pop()))

    def page(before: str | None = None, some: bool = True, **wanted: Any) -> Callable[[], Awaitable[None]]:
        async def ask() -> None:
            assert bool((await store.history.page(HistoryFilter(**wanted), 50, before)).rows) == some

        return ask

    def chart(webhook: str | None, days: int) -> Callable[[], Awaitable[object]]:
        until = int(now // 60) + 1
        step = MINUTES_OF_A_DAY if days > 1 else 60

        async def ask() -> None:
            await store.volumes.buckets(webhook, until - days * MINUTES_OF_A_DAY, until, step)

        return ask

    async def forget(oldest: Callable[[], Awaitable[list[str]]]) -> None:
        """One step of retention, as `usecases/operations/retention.py` does it."""
        ids = await oldest()
        assert ids and await store.retention.delete(ids) == len(ids)

    def too_many() -> Awaitable[list[str]]:
        return store.retention.up_to("inv_z", "")

    async def of_one_webhook() -> list[str]:
        return (await store.retention.before(f"wh_{next(turn)}", now, ""))[:100]

    async def strip() -> None:
        some = (await store.retention.with_bodies(f"wh_{next(turn)}", now, ""))[:100]
        await store.retention.strip(some)

    middle = first_id_at("inv", (began + rows // 2 * APART_MS) / 1000)
    result = {"accept 100 calls at once": await timed(record, 15)}
    for _ in range(WAITING // 500):
        await record(500)
    result["claim 100"] = await timed(claim, 15)
    result["settle 100"] = await timed(settle, 15)
    for name, work in (
        ("backlog (5,000 wait)", lambda: store.deliveries.backlog(now)),
        ("whether anything is due", lambda: store.deliveries.any_due(now)),
        ("newest page", page()),
        ("a page in the middle", page(middle)),
        ("newest page of one webhook", page(webhook_id="wh_7")),
        ("a page of one webhook in the middle", page(middle, webhook_id="wh_7")),
        ("rejected ones", page(status="rejected")),
        ("rejected ones of one webhook", page(webhook_id="wh_7", status="rejected")),
        ("waiting ones", page(status="accepted")),
        ("waiting ones of one webhook", page(status="accepted", webhook_id="wh_7")),
        ("failed ones (none there)", page(status="failed", some=False)),
        ("answered ones (none there)", page(status="responded", some=False)),
        ("started ones", page(middle, status="started")),
        ("a code", page(code="credential_mismatch")),
        ("a search that finds nothing", page(search="no such text", some=False)),
        ("the overview's chart, a day", chart(None, 1)),
        ("the overview's chart, 30 days", chart(None, 30)),
        ("one webhook's chart, 30 days", chart("wh_7", 30)),
        ("forget 500, the oldest", lambda: forget(too_many)),
        ("forget 100 of one webhook", lambda: forget(of_one_webhook)),
        ("take 100 bodies of one webhook", strip),
        ("where the cap on all rows cuts", lambda: store.retention.horizon(rows - 10_000)),
    ):
        result[name] = await timed(work, 7)
    return result


async def timed(work: Callable[[], Awaitable[Any]], times: int) -> float:
    took = []
    for _ in range(times):
        began = time.perf_counter()
        await work()
        took.append((time.perf_counter() - began) * 1000)
    return min(took)


if __name__ == "__main__":
    asyncio.run(
        main(
            [int(size.replace(",", "").replace("_", "")) for size in sys.argv[1:]]
            or [50_000, 500_000, 2_000_000, 5_000_000]
        )
    )
