"""``python -m bench.console_pages``: how long the console's pages take, with a million invocations of the
last 30 days in SQLite.

For each page the program is started anew: its first hit is the first request after the start that asks for a
page at all. Then the same page again and again.
"""

import argparse
import os
import sqlite3
import tempfile
import time
from datetime import UTC, datetime
from http.client import HTTPConnection
from pathlib import Path
from statistics import median, quantiles
from typing import Any
from urllib.parse import urlencode

import uvloop

from bench.__main__ import RESULTS
from bench.rooms import KEYS, Program, free_port, make_webhook
from postern.stores.sql.tables import LATENCY_BOUNDS_MS
from postern.stores.store import Store

WEBHOOKS = 10
DAYS = 30
PASSWORD = "a password for measuring"

PAGES = [
    "/webhooks",
    "/history",
    "/history?status=rejected",
    "/history?code=credential_mismatch&webhook={webhook}",
    "/history?span=604800",
    "/history/{invocation}",
    "/live",
    "/volume?range=hour",
    "/volume",
    "/volume?range=week",
    "/volume?range=month",
    "/webhooks/{webhook}",
    "/webhooks/{webhook}?range=month",
    "/webhooks/{webhook}/live",
    "/webhooks/{webhook}/history",
    "/webhooks/{webhook}/mapping",
    "/webhooks/{webhook}/authentication",
    "/webhooks/{webhook}/advanced",
    "/webhooks/new/signed",
    "/replays",
    "/tester",
    "/workflows",
    "/settings",
    "/settings/audit",
]

_INVOCATIONS = """
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :rows)
INSERT INTO invocations (id, webhook_id, received_at, outcome, code, status, config_version, method, path, query, headers, body_size, address,
  duration_us, matched, detail, trace, body)
SELECT printf('inv_%012x%020x', :first + i * :step, i), w.id, :first + i * :step,
  CASE i % 50 WHEN 0 THEN 'rejected' WHEN 1 THEN 'duplicate' ELSE 'accepted' END,
  CASE i % 50 WHEN 0 THEN 'credential_mismatch' WHEN 1 THEN 'duplicate' ELSE 'accepted' END,
  200, 1, 'POST', CAST('/webhook/x' AS BLOB), X'', CAST('[["content-type","application/json"]]' AS BLOB), 46, '192.0.2.1', 300 + i * 37 % 9000,
  'main', '', CAST('[["webhook enabled", true, ""]]' AS BLOB), CAST('{"order":{"number":"1001"},"total":10.00,"n":1}' AS BLOB)
FROM n JOIN (SELECT id, row_number() OVER (ORDER BY id) - 1 AS place FROM webhooks) w ON w.place = (i + i / 50) % :webhooks ORDER BY i
"""
_DELIVERIES = """
INSERT INTO deliveries (key, invocation_id, webhook_id, emission, state, attempts, next_at, fields, created_at, started_at, runs, error, answer_code)
SELECT id || '.1', id, webhook_id, 1, 'started', 1, received_at, CAST('{}' AS BLOB), received_at, received_at, 1, '', '' FROM invocations
WHERE outcome = 'accepted' ORDER BY id
"""
_TALLIES = """
INSERT INTO tallies (webhook_id, name, shard, count, last_at)
SELECT webhook_id, 'calls', 0, count(*), max(received_at) FROM invocations GROUP BY webhook_id
"""


def _volumes() -> str:
    """As the recorder counts them: by minute, and each call within the narrowest bound."""
    lower, columns, sums = 0, [], []
    for bound in LATENCY_BOUNDS_MS:
        columns.append(f"within_{bound}")
        sums.append(f"sum(duration_us > {lower * 1000} AND duration_us <= {bound * 1000})")
        lower = bound
    return f"""INSERT INTO volumes (webhook_id, minute, code, shard, calls, {", ".join(columns)})
        SELECT webhook_id, received_at / 60000, code, 0, count(*), {", ".join(sums)} FROM invocations GROUP BY 1, 2, 3"""


def fill(file: Path, rows: int) -> str:
    """The newest invocation's id."""
    step = DAYS * 86_400_000 // rows
    first = int(time.time() * 1000) - rows * step
    with sqlite3.connect(file, timeout=120) as connection:
        connection.execute(_INVOCATIONS, {"rows": rows, "first": first, "step": step, "webhooks": WEBHOOKS})
        connection.execute(_DELIVERIES)
        connection.execute(_TALLIES)
        connection.execute(_volumes())
        connection.commit()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return str(
            connection.execute("SELECT max(id) FROM invocations WHERE outcome = 'accepted'").fetchone()[0]
        )


async def roll_up(file: Path) -> None:
    """What the program does by itself soon after its first start."""
    store = Store(f"sqlite:///{file}", KEYS)
    await store.open()
    while await store.volumes.roll_up(time.time()):
        pass
    await store.close()


class Visitor:
    def __init__(self, program: Program) -> None:
        self._connection = HTTPConnection("127.0.0.1", program.port, timeout=60)
        self.cookie = ""

    def sign_in(self) -> str:
        form = urlencode({"name": "admin", "password": PASSWORD, "next": ""})
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin"}
        self._connection.request("POST", "/sign-in", form, headers)
        answer = self._connection.getresponse()
        answer.read()
        cookies = answer.headers.get_all("set-cookie") or []
        return next(one for one in cookies if one.startswith("postern_session=")).partition(";")[0]

    def visit(self, path: str, cookie: str) -> float:
        """Milliseconds until the whole page is there."""
        began = time.perf_counter()
        self._connection.request("GET", path, headers={"Cookie": cookie})
        answer = self._connection.getresponse()
        page = answer.read()
        took = (time.perf_counter() - began) * 1000
        if answer.status != 200 or len(page) < 1000:
            raise SystemExit(f"{path} was answered with {answer.status}:\n{page.decode()[:2000]}")
        return took


def measure(folder: Path, rows: int, times: int, settle: float) -> list[tuple[str, float, list[float]]]:
    environment = {
        "POSTERN_ADMIN_PASSWORD": PASSWORD,
        "POSTERN_PORT": str(free_port()),
        "POSTERN_SECRET_KEYS": KEYS[0],
    }

    def started(**more: str) -> Program:
        program = Program(folder, environment | more)
        program.wait_until_ready()
        return program

    program = started()
    webhook = [make_webhook(program, name=f"Shop {number}")[0] for number in range(WEBHOOKS)][3]
    cookie = Visitor(program).sign_in()
    program.stop()
    file = folder / "data" / "postern.db"
    invocation = fill(file, rows)
    uvloop.run(roll_up(file))
    found = []
    for page in PAGES:
        program = started()
        time.sleep(settle)
        visitor, path = Visitor(program), page.format(webhook=webhook, invocation=invocation)
        first = visitor.visit(path, cookie)
        found.append((page, first, [visitor.visit(path, cookie) for _ in range(times)]))
        print(f"{page}: {first:.0f}, then {median(found[-1][2]):.0f}", flush=True)
        program.stop()
    return found


def table(found: list[tuple[str, float, list[float]]]) -> str:
    lines = ["| ms | first hit after a start | median | p95 |", "|---|---:|---:|---:|"]
    for page, first, warm in found:
        lines.append(f"| `{page}` | {first:.1f} | {median(warm):.1f} | {quantiles(warm, n=20)[-1]:.1f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.console_pages", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument(
        "--times", type=int, default=40, help="how often each page is asked for after its first hit"
    )
    parser.add_argument(
        "--settle", type=float, default=4.0, help="seconds from the program being ready to the first hit"
    )
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        text: Any = table(measure(Path(folder), asked.rows, asked.times, asked.settle))
    print(text)
    now = datetime.now(UTC)
    how = f"{asked.rows:,} invocations of {DAYS} days and {WEBHOOKS} webhooks on SQLite, embedded engine; each page's program started anew, "
    how += f"first asked {asked.settle:g} s after it was ready. Load average at the end: {os.getloadavg()[0]:.1f}."
    RESULTS.mkdir(exist_ok=True)
    with (RESULTS / f"{now:%Y-%m-%d}.md").open("a") as file:
        file.write(f"# Console pages, {now:%Y-%m-%d %H:%M} UTC\n\n{how}\n\n{text}\n\n")


if __name__ == "__main__":
    main()
