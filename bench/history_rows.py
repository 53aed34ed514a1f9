"""``python -m bench.history_rows``: does a long history slow accepting, paging or claiming? 10,000 rows
beside 1,000,000."""

import argparse
import asyncio
import sqlite3
import tempfile
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

import uvloop
from sqlalchemy import text

from bench.__main__ import RESULTS
from bench.rooms import kept
from postern.core.deliveries.delivery import Started, delivery_key
from postern.core.history.invocation import Delivery, Entry, HistoryFilter, Invocation
from postern.identity import new_id
from postern.stores.store import Store

WEBHOOKS = 20

_INVOCATIONS = """
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :rows)
INSERT INTO invocations (id, webhook_id, received_at, outcome, code, status, config_version, method, path, query, headers, body_size, address,
  duration_us, matched, detail, trace, body)
SELECT printf('inv_%012x%020x', :first + i * 1000, i), 'wh_' || (i % :webhooks), :first + i * 1000,
  CASE i % 50 WHEN 0 THEN 'rejected' ELSE 'accepted' END, CASE i % 50 WHEN 0 THEN 'credential_mismatch' ELSE 'accepted' END,
  200, 1, 'POST', CAST('/webhook/x' AS BLOB), X'', CAST('[["content-type","application/json"]]' AS BLOB), 200, '192.0.2.1', 300, 'main', '',
  CAST('[]' AS BLOB), zeroblob(200)
FROM n
"""
_DELIVERIES = """
INSERT INTO deliveries (key, invocation_id, webhook_id, emission, state, attempts, next_at, fields, created_at, error, answer_code)
SELECT id || '.1', id, webhook_id, 1, 'started', 1, received_at, CAST('{}' AS BLOB), received_at, '', '' FROM invocations
WHERE outcome = 'accepted' ORDER BY id
"""


def entry(number: int) -> Entry:
    now = time.time()
    id, webhook = new_id("inv"), f"wh_{number % WEBHOOKS}"
    invocation = Invocation(
        id, webhook, now, "accepted", "accepted", 200, 1, "POST", b"/webhook/x", b"", b"[]", b"x" * 1200, 1200, "192.0.2.1", 300, "main", "", b"[]"
    )  # fmt: skip
    return Entry(invocation, Delivery(delivery_key(id, 1), id, webhook, 1, "queued", 0, now, {}, now))


async def best_of(times: int, action: Callable[[], Awaitable[object]]) -> float:
    """Milliseconds. The best, because everything else only adds to it."""
    best = float("inf")
    for _ in range(times):
        began = time.perf_counter()
        await action()
        best = min(best, time.perf_counter() - began)
    return best * 1000


def fill(store: Store, rows: int) -> int:
    """A call a second until now; when the first one came, in milliseconds."""
    first = int(time.time() * 1000) - (rows + 10) * 1000
    with store.database.writer.begin() as connection:
        connection.execute(text(_INVOCATIONS), {"rows": rows, "first": first, "webhooks": WEBHOOKS})
        connection.execute(text(_DELIVERIES))
    with sqlite3.connect(
        str(store.database.url.database), timeout=120
    ) as beside:  # what was just made belongs in the file, not in its log
        beside.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return first


async def measure(folder: Path, rows: int) -> dict[str, float]:
    store = Store(f"sqlite:///{folder / f'{rows}.db'}", ["a key for measuring only"])
    await store.open()
    first = fill(store, rows)
    try:
        return await _measured(store, rows, first)
    finally:
        await store.close()


async def _measured(store: Store, rows: int, first: int) -> dict[str, float]:
    async def accept() -> None:
        await asyncio.gather(*(kept(store, entry(number)) for number in range(1000)))

    async def claim_and_settle() -> None:
        for one in await store.deliveries.claim(time.time(), 30, 100):
            await store.deliveries.started(one, Started(1, ()), time.time())

    middle = f"inv_{first + rows // 2 * 1000:012x}"
    page = store.history.page
    result = {
        "accept 1,000 calls at once": await best_of(8, accept),
        "claim and settle 100": await best_of(8, claim_and_settle),
    }
    for name, wanted, before in (
        ("newest page", HistoryFilter(), None),
        ("a page in the middle", HistoryFilter(), middle),
        ("newest page of one webhook", HistoryFilter(webhook_id="wh_7"), None),
        ("a page of one webhook in the middle", HistoryFilter(webhook_id="wh_7"), middle),
        ("rejected ones", HistoryFilter(status="rejected"), None),
        ("rejected ones of one webhook", HistoryFilter(webhook_id="wh_0", status="rejected"), None),
        ("waiting ones (7,000 there)", HistoryFilter(status="accepted"), None),
        ("failed ones (none there)", HistoryFilter(status="failed"), None),
        ("started ones", HistoryFilter(status="started"), middle),
        ("a code", HistoryFilter(code="credential_mismatch"), None),
        ("a search that finds nothing", HistoryFilter(search="no such text"), None),
    ):
        result[name] = await best_of(5, lambda wanted=wanted, before=before: page(wanted, 50, before))  # type: ignore[misc]
    result["backlog"] = await best_of(5, lambda: store.deliveries.backlog(time.time()))
    return result


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.history_rows", description=__doc__)
    parser.add_argument("--few", type=int, default=10_000)
    parser.add_argument("--many", type=int, default=1_000_000)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        few = uvloop.run(measure(Path(folder), asked.few))
        many = uvloop.run(measure(Path(folder), asked.many))
    lines = [f"| ms | {asked.few:,} rows | {asked.many:,} rows | times |", "|---|---:|---:|---:|"]
    lines += [
        f"| {name} | {few[name]:.2f} | {many[name]:.2f} | {many[name] / few[name]:.1f} |" for name in few
    ]
    report = "\n".join(lines)
    print(report)
    now = datetime.now(UTC)
    RESULTS.mkdir(exist_ok=True)
    with (RESULTS / f"{now:%Y-%m-%d}.md").open("a") as file:
        file.write(
            f"# A long history, {now:%Y-%m-%d %H:%M} UTC\n\nSQLite, best of several. Trust the ratios.\n\n{report}\n\n"
        )


if __name__ == "__main__":
    main()
