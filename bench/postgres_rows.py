"""What a call costs on Postgres while history grows: `python -m bench.postgres_rows [rows …]`, 5,000,000 unless told.

The first rows are made by the server itself; what is measured goes through the store, as calls do. Each figure is the best of
fifteen: on a machine that others use too, it is the one that says what the work itself costs.
"""

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

from sqlalchemy import Connection, delete, func, select, text

from bench.rooms import KEYS, durable_postgres, entry, kept, table
from postern.core.delivery import Started
from postern.core.invocation import HistoryFilter
from postern.stores.store import Store
from postern.stores.tables import deliveries, invocations

WEBHOOKS = 200
STEP = 1_000

FILL = """
INSERT INTO invocations SELECT 'inv_' || lpad(to_hex((1700000000000 + n)::bigint), 12, '0') || substr(md5(n::text), 1, 20),
  'wh_' || (n % CAST(:webhooks AS bigint)), 1700000000000 + n, CASE WHEN n % 20 = 0 THEN 'rejected' ELSE 'accepted' END,
  CASE WHEN n % 20 = 0 THEN 'credential_mismatch' ELSE 'accepted' END, 200, 1, 'POST', '/webhook/abcdefghijklmnopqrstuv', '',
  decode(repeat('5b5d', 150), 'hex'), 400, '203.0.113.9', 300, 'main', '', decode(repeat('5b5d', 100), 'hex'), NULL,
  decode(repeat('7b7d', 200), 'hex') FROM generate_series(CAST(:first AS bigint), CAST(:last AS bigint)) n
"""
DELIVER = """
INSERT INTO deliveries (key, invocation_id, webhook_id, emission, state, attempts, next_at, fields, created_at, started_at, runs)
SELECT id || '.1', id, webhook_id, 1, 'started', 1, received_at, '{}', received_at, received_at, 1 FROM invocations
WHERE received_at BETWEEN 1700000000000 + CAST(:first AS bigint) AND 1700000000000 + CAST(:last AS bigint) AND outcome = 'accepted'
"""


async def main(sizes: list[int]) -> None:
    with durable_postgres() as url:
        store = Store(url, KEYS)
        await store.open(migrate=True)
        rows, there = [], 0
        for size in sizes:
            while there < size:
                step = min(100_000, size - there)
                fill(store, there + 1, there + step)
                there += step
            with store.database.writer.connect() as connection:
                connection.execution_options(isolation_level="AUTOCOMMIT").execute(text("VACUUM ANALYZE"))
            rows.append([f"{size:,}", *(await measured(store))])
            print(table(HEADING, rows), flush=True)
        await store.close()


def fill(store: Store, first: int, last: int) -> None:
    with store.database.writer.begin() as connection:
        connection.execute(text("SET LOCAL statement_timeout = 0"))
        connection.execute(text(FILL), {"first": first, "last": last, "webhooks": WEBHOOKS})
        connection.execute(text(DELIVER), {"first": first, "last": last})


HEADING = [
    "rows",
    "record 100, ms",
    "claim 100, ms",
    "settle 100, ms",
    "newest page, ms",
    "one webhook's page, ms",
    "rejected page, ms",
    "deep page, ms",
    "forget 1,000, ms",
]


async def measured(store: Store) -> list[str]:
    now = time.time()
    claimed: list[Any] = []

    async def record() -> None:
        await asyncio.gather(*(kept(store, entry(at=now, webhook=f"wh_{n}")) for n in range(100)))

    async def claim() -> None:
        claimed.append(await store.deliveries.claim(now + 1, 30, 100))

    async def settle() -> None:
        await asyncio.gather(*(store.deliveries.started(one, Started(1), now) for one in claimed.pop()))

    async def page(wanted: HistoryFilter, before: str | None = None) -> None:
        assert (await store.history.page(wanted, 50, before)).rows

    with store.database.readers.connect() as connection:
        middle = connection.scalar(
            select(invocations.c.id)
            .order_by(invocations.c.id)
            .offset(connection.scalar(select(func.count()).select_from(invocations)) // 2)
            .limit(1)
        )  # type: ignore[operator]
    return [
        await timed(record),
        await timed(claim),
        await timed(settle),
        await timed(lambda: page(HistoryFilter())),
        await timed(lambda: page(HistoryFilter(webhook_id="wh_7"))),
        await timed(lambda: page(HistoryFilter(status="rejected"))),
        await timed(lambda: page(HistoryFilter(webhook_id="wh_7"), middle)),
        await timed(lambda: store.writer.write(forget)),
    ]


def forget(connection: Connection) -> None:
    """The oldest, as retention does it: a range of the primary key, a thousand rows a step."""
    oldest = list(connection.execute(select(invocations.c.id).order_by(invocations.c.id).limit(STEP)).scalars())
    connection.execute(delete(deliveries).where(deliveries.c.key >= oldest[0], deliveries.c.key < oldest[-1] + "/"))
    connection.execute(delete(invocations).where(invocations.c.id >= oldest[0], invocations.c.id <= oldest[-1]))


async def timed(work: Callable[[], Awaitable[Any]], times: int = 15) -> str:
    took = []
    for _ in range(times):
        began = time.perf_counter()
        await work()
        took.append((time.perf_counter() - began) * 1000)
    return f"{min(took):.1f}"


if __name__ == "__main__":
    asyncio.run(main([int(size.replace(",", "").replace("_", "")) for size in sys.argv[1:]] or [50_000, 500_000, 2_000_000, 5_000_000]))
