"""`python -m bench.retention [rows]`: five million calls in the history. What pruning half of them costs
those who call meanwhile."""

import asyncio
import sqlite3
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import quantiles
from typing import Any

import uvloop
from sqlalchemy import text

from bench.rooms import keep, kept, table
from postern.core.access.accounts import Actor
from postern.core.deliveries.delivery import delivery_key
from postern.core.history.invocation import Delivery, Entry, Invocation
from postern.core.operations.retention import RetentionPolicy
from postern.identity import new_id
from postern.settings import Settings
from postern.stores.store import Store
from postern.usecases.operations import retention
from postern.usecases.runtime.gateway import Gateway
from postern.usecases.shapes import validated
from postern.usecases.webhooks import webhooks
from postern.usecases.webhooks.requests import WebhookRequest
from postern.wiring.gateway import opened

WHO = Actor("bench", "admin")
CALLERS = 16
PAUSE = 0.02
SECONDS = 20.0

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


async def accepting(gateway: Gateway, until: Callable[[], bool]) -> list[float]:
    """Calls with a pause between two calls: what is measured is how long each waits, not how many there could be."""
    took: list[float] = []

    async def caller(number: int) -> None:
        while not until():
            began = time.perf_counter()
            await kept(gateway.store, entry(number))
            took.append(time.perf_counter() - began)
            await asyncio.sleep(PAUSE)

    await asyncio.gather(*(caller(number) for number in range(CALLERS)))
    return took


async def for_a_while(gateway: Gateway) -> list[float]:
    end = time.perf_counter() + SECONDS
    return await accepting(gateway, lambda: time.perf_counter() > end)


async def beside(gateway: Gateway, work: Callable[[], Awaitable[Any]]) -> tuple[list[float], float]:
    """Measures how long callers waited while the work was done, for a bounded time, and how long the work took."""
    began = time.perf_counter()
    doing = asyncio.ensure_future(work())
    took = await accepting(gateway, lambda: doing.done() or time.perf_counter() - began > SECONDS)
    lasted = time.perf_counter() - began
    doing.cancel()
    await asyncio.gather(doing, return_exceptions=True)
    return took, lasted


def row(name: str, took: list[float], done: str) -> list[str]:
    centiles = quantiles(took, n=1000)
    return [
        name,
        f"{len(took):,}",
        *(f"{centiles[place] * 1000:.1f}" for place in (499, 989, 998)),
        f"{max(took) * 1000:.0f}",
        done,
    ]


async def measure(folder: Path, rows: int) -> str:
    settings = Settings({"POSTERN_DATA_DIR": str(folder), "POSTERN_ENGINE": "none", "POSTERN_LOG": "off"})
    async with opened(settings) as gateway:
        store: Any = gateway.store
        for number in range(WEBHOOKS):
            made: WebhookRequest = validated(
                WebhookRequest, {"name": f"Hook {number}", "authentication": {"method": "none"}}
            )
            id = (await webhooks.create(gateway, WHO, made)).id
            with (
                store.database.writer.begin() as connection
            ):  # the rows that are filled in know their webhooks by number
                connection.execute(
                    text("UPDATE webhooks SET id = :new WHERE id = :old"), {"new": f"wh_{number}", "old": id}
                )
        began = time.perf_counter()
        fill(store, rows)
        filled = time.perf_counter() - began
        size = (folder / "postern.db").stat().st_size / 1e9
        days = rows / 86_400
        rows_shown = [row("nothing besides", await for_a_while(gateway), "")]

        async def one_after_another(step: Callable[[], Awaitable[Any]]) -> None:
            while True:
                await step()

        gone: dict[str, int] = {}

        def report(what: str, so_far: int) -> None:
            gone[what] = so_far

        def rate(lasted: float) -> str:
            return ", ".join(f"{number / lasted:,.0f} {what} a second" for what, number in gone.items())

        gateway.retention = RetentionPolicy(history_days=max(1, int(days / 2)))
        took, lasted = await beside(gateway, lambda: retention.prune(gateway, WHO, report))
        rows_shown.append(row("pruning old calls", took, rate(lasted)))
        gone.clear()
        gateway.retention = RetentionPolicy(history_days=3650, body_days=0)
        took, lasted = await beside(gateway, lambda: retention.prune(gateway, WHO, report))
        rows_shown.append(row("taking bodies away", took, rate(lasted)))
        gone.clear()
        gateway.retention = RetentionPolicy(history_days=3650, most_rows=rows // 2)
        began = time.perf_counter()
        await store.retention.horizon(rows // 2)
        horizon = time.perf_counter() - began
        took, lasted = await beside(gateway, lambda: retention.prune(gateway, WHO, report))
        rows_shown.append(row(f"pruning down to {rows // 2:,} rows", took, rate(lasted)))
        began = time.perf_counter()
        planned = await retention.plan(gateway, WHO)
        plan = time.perf_counter() - began
    heading = ["beside it", "calls", "p50 ms", "p99 ms", "p99.9 ms", "most ms", "done"]
    return "\n\n".join(
        [
            f"{rows:,} calls over {days:.0f} days of {WEBHOOKS} webhooks, {size:.1f} GB, filled in {filled:.0f} s. {CALLERS} callers, "
            f"each with a pause of {PAUSE * 1000:.0f} ms between two calls of 1,200 bytes; {SECONDS:.0f} s each.",
            table(heading, rows_shown),
            f"To find where a cap of {rows // 2:,} rows ends takes {horizon * 1000:.0f} ms, once a round. "
            f"`postern prune --dry-run` takes {plan:.1f} s ({planned['overTheCap']:,} over the cap then).",
        ]
    )


def main(rows: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        rows_shown = uvloop.run(measure(Path(folder), rows))
    keep("Retention beside calls", "SQLite.", rows_shown)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5_000_000)
