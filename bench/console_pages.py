"""``python -m bench.console_pages``: how long the console's pages take and how large they are, with ten thousand webhooks
and a million invocations of the last 30 days in SQLite; and what a start, a change and `/readyz` take with as many.

One program answers for all pages, each first once and then again and again. With ``--anew`` it is started anew for each
page: then the first hit is the first request after the start that asks for a page at all.
"""

import argparse
import os
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from statistics import median, quantiles
from threading import Event, Thread
from urllib.parse import urlencode

import uvloop

from bench.rooms import KEYS, Program, free_port, keep
from postern.core.webhooks.settings import (
    FieldMapping,
    NoAuthentication,
    Resolved,
    TokenAuthentication,
    WebhookSettings,
    write_document,
)
from postern.identity import new_id, new_short_code
from postern.stores.secrets.vault import Vault
from postern.stores.sql.moments import milliseconds
from postern.stores.sql.tables import LATENCY_BOUNDS_MS
from postern.stores.store import Store

DAYS = 30
PASSWORD = "a password for measuring"

PAGES = [
    "/webhooks",
    "/webhooks?page=100",
    "/webhooks?sort=name",
    "/webhooks?sort=last_day",
    "/webhooks?state=failing",
    "/webhooks?tag=eu&folder=Shops&search=1",
    "/webhooks?group=folder",
    "/webhooks/choices?deleted=1&search=shop+9",
    "/calls",
    "/calls?status=rejected",
    "/calls?code=credential_mismatch&webhook={webhook}",
    "/calls?span=604800",
    "/calls?header=content-type",
    "/calls?header=x-topic",
    "/calls?field=order.number=1001",
    "/calls?field=order.number=none",
    "/calls?search=none",
    "/calls/{invocation}",
    "/calls?live=1",
    "/incidents",
    "/volume?range=hour",
    "/volume",
    "/volume?range=week",
    "/volume?range=month",
    "/volume?webhook={webhook}",
    "/find?find=shop",
    "/webhooks/{webhook}",
    "/webhooks/{webhook}/calls",
    "/webhooks/{webhook}/settings",
    "/webhooks/{webhook}/schedule",
    "/webhooks/{webhook}/rejected",
    "/webhooks/{webhook}/ready",
    "/webhooks/new",
    "/webhooks/new/signed",
    "/webhooks/new/tool",
    "/bin",
    "/replays",
    "/tester",
    "/workflows",
    "/settings",
    "/settings/retention",
    "/settings/audit",
]
MOST_MS, MOST_KB = 50, 120

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


def make_webhooks(file: Path, count: int) -> list[str]:
    """Their ids. Every third one is called with a token; they are in folders and have tags."""
    vault, now = Vault(KEYS), time.time()
    ids = [new_id("wh") for _ in range(count)]
    moment = milliseconds(now)
    rows = [
        (ids[number], new_short_code(), settings.name, write_document(settings, Resolved()), moment, moment)
        for number, settings in enumerate(map(_settings, range(count)))
    ]
    secrets = [
        (new_id("sec"), one, vault.seal(b"a token of this measurement", one, "main"), moment)
        for one in ids[::3]
    ]
    with sqlite3.connect(file, timeout=120) as connection:
        connection.executemany(
            "INSERT INTO webhooks (id, short_code, name, document, created_at, updated_at, enabled, held, version, epoch) "
            "VALUES (?, ?, ?, ?, ?, ?, 1, 0, 1, 1)",
            rows,
        )
        connection.executemany(
            "INSERT INTO secrets (id, webhook_id, field, envelope, created_at) VALUES (?, ?, 'main', ?, ?)",
            secrets,
        )
        connection.execute("UPDATE epochs SET epoch = 1")
    return ids


def _settings(number: int) -> WebhookSettings:
    return WebhookSettings(
        name=f"{('Orders', 'Payments', 'Stock')[number % 3]} of shop {number}",
        authentication=TokenAuthentication() if number % 3 == 0 else NoAuthentication(),
        field_mapping=FieldMapping(field_one="order.number"),
        folder=f"Shops/Region {number % 40}" if number % 4 else None,
        tags=[tag for place, tag in enumerate(("eu", "paid", "test")) if number % (place + 2) == 0],
    )


def fill(file: Path, rows: int, count: int) -> str:
    """The newest invocation's id."""
    step = DAYS * 86_400_000 // rows
    first = int(time.time() * 1000) - rows * step
    with sqlite3.connect(file, timeout=120) as connection:
        connection.execute(_INVOCATIONS, {"rows": rows, "first": first, "step": step, "webhooks": count})
        connection.execute(_DELIVERIES)
        connection.execute(_TALLIES)
        connection.execute(_volumes())
        # By their values calls are found afterwards; that work is not what is measured.
        connection.execute(
            "INSERT OR REPLACE INTO chores (name, at, reached) SELECT 'findable', 0, max(id) FROM invocations"
        )
        connection.commit()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return str(
            connection.execute("SELECT max(id) FROM invocations WHERE outcome = 'accepted'").fetchone()[0]
        )


async def roll_up(file: Path) -> None:
    """Makes the sums that the program makes soon after its first start."""
    store = Store(f"sqlite:///{file}", KEYS)
    await store.open()
    while await store.volumes.roll_up(time.time()):
        pass
    await store.close()


@dataclass
class Found:
    page: str
    first: float
    warm: list[float]
    processor: float
    """Milliseconds of the gateway's process, for each of the warm requests."""
    size: int


class Visitor:
    def __init__(self, program: Program) -> None:
        self._connection = HTTPConnection("127.0.0.1", program.port, timeout=60)

    def sign_in(self) -> str:
        form = urlencode({"name": "admin", "password": PASSWORD, "next": ""})
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin"}
        self._connection.request("POST", "/sign-in", form, headers)
        answer = self._connection.getresponse()
        answer.read()
        cookies = answer.headers.get_all("set-cookie") or []
        return next(one for one in cookies if one.startswith("postern_session=")).partition(";")[0]

    def visit(self, path: str, cookie: str) -> tuple[float, int]:
        """Milliseconds until the whole page is there, and its bytes."""
        return self.ask("GET", path, {"Cookie": cookie})

    def ask(self, method: str, path: str, headers: dict[str, str], body: bytes = b"") -> tuple[float, int]:
        began = time.perf_counter()
        self._connection.request(method, path, body or None, headers)
        answer = self._connection.getresponse()
        page = answer.read()
        took = (time.perf_counter() - began) * 1000
        if answer.status != 200:
            raise SystemExit(f"{path} was answered with {answer.status}:\n{page.decode()[:2000]}")
        return took, len(page)


def processor(program: Program) -> float:
    """Returns the milliseconds that its process has used so far."""
    fields = Path(f"/proc/{program.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")


def memory(program: Program) -> float:
    """MB."""
    lines = Path(f"/proc/{program.process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


@dataclass
class Asked:
    rows: int
    webhooks: int
    times: int
    settle: float
    anew: bool
    only: str
    load: int
    """Calls a second that come meanwhile."""


@contextmanager
def callers(program: Program, file: Path, rate: int) -> Iterator[None]:
    """So many calls a second to a webhook without authentication."""
    with sqlite3.connect(file) as connection:
        (code,) = connection.execute(
            "SELECT short_code FROM webhooks ORDER BY id LIMIT 1 OFFSET 1"
        ).fetchone()
    ended = Event()

    def call() -> None:
        line = HTTPConnection("127.0.0.1", program.port, timeout=60)
        while rate and not ended.wait(1 / rate):
            line.request("POST", f"/webhook/{code}", b'{"n": 1}', {"Content-Type": "application/json"})
            line.getresponse().read()

    calling = Thread(target=call)
    calling.start()
    try:
        yield
    finally:
        ended.set()
        calling.join()


def measure(folder: Path, asked: Asked) -> tuple[list[Found], list[tuple[str, str]]]:
    environment = {
        "POSTERN_ADMIN_PASSWORD": PASSWORD,
        "POSTERN_PORT": str(free_port()),
        "POSTERN_SECRET_KEYS": KEYS[0],
    }

    def started() -> Program:
        program = Program(folder, environment)
        program.wait_until_ready()
        return program

    program = started()
    cookie = Visitor(program).sign_in()
    program.stop()
    file = folder / "data" / "postern.db"
    webhook = make_webhooks(file, asked.webhooks)[asked.webhooks // 3]
    invocation = fill(file, asked.rows, asked.webhooks)
    uvloop.run(roll_up(file))
    began = time.perf_counter()
    program = started()
    gateway = _gateway(program, webhook, time.perf_counter() - began)
    time.sleep(asked.settle)
    found = []
    for page in (one for one in PAGES if asked.only in one):
        if asked.anew:
            program.stop()
            program = started()
            time.sleep(asked.settle)
        visitor, path = Visitor(program), page.format(webhook=webhook, invocation=invocation)
        with callers(program, file, asked.load):
            first, size = visitor.visit(path, cookie)
            before = processor(program)
            warm = [visitor.visit(path, cookie)[0] for _ in range(asked.times)]
        found.append(Found(page, first, warm, (processor(program) - before) / asked.times, size))
        told = f"{first:.0f}, then {median(warm):.0f} ms, of the processor {found[-1].processor:.0f}"
        print(f"{page}: {told}, {size / 1024:.0f} KB", flush=True)
    gateway.append(("memory at the end, MB", f"{memory(program):.0f}"))
    program.stop()
    return found, gateway


def _gateway(program: Program, webhook: str, took: float) -> list[tuple[str, str]]:
    """Measures what as many webhooks cost the gateway itself."""
    visitor = Visitor(program)
    key = {"Authorization": f"Bearer {program.admin_key}", "Content-Type": "application/json"}
    figures = [
        ("start until `/readyz` answers, s", f"{took:.1f}"),
        ("processor time of the start, s", f"{processor(program) / 1000:.1f}"),
        ("memory after the start, MB", f"{memory(program):.0f}"),
    ]
    for what, method, path, body in (
        ("`/readyz`, ms", "GET", "/readyz", b""),
        ("a setting changed, and in force, ms", "PATCH", f"/api/v1/webhooks/{webhook}", b'{"tags": ["eu"]}'),
        ("`GET /api/v1/webhooks?limit=200`, ms", "GET", "/api/v1/webhooks?limit=200", b""),
        ("the same, filtered and sorted, ms", "GET", "/api/v1/webhooks?tag=eu&sort=last_call&limit=20", b""),
    ):
        took_each = [visitor.ask(method, path, key, body)[0] for _ in range(15)]
        figures.append((what, f"{median(took_each):.1f}"))
    many = b'{"action": "%s", "filter": {}}'
    for action in (b"hold", b"release"):
        took_all, _ = visitor.ask("POST", "/api/v1/webhooks/many", key, many % action)
        figures.append((f"`{action.decode()}` of all of them, s", f"{took_all / 1000:.1f}"))
    return figures


def table(found: list[Found]) -> str:
    lines = [
        "| | first hit, ms | median, ms | p95, ms | processor, ms | KB |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for one in found:
        times = f"{one.first:.1f} | {median(one.warm):.1f} | {quantiles(one.warm, n=20)[-1]:.1f}"
        over = " **more**" if one.processor > MOST_MS or one.size > MOST_KB * 1024 else ""
        lines.append(f"| `{one.page}`{over} | {times} | {one.processor:.1f} | {one.size / 1024:.0f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.console_pages", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--webhooks", type=int, default=10_000)
    parser.add_argument(
        "--times", type=int, default=40, help="how often each page is asked for after its first hit"
    )
    parser.add_argument(
        "--settle", type=float, default=4.0, help="seconds from the program being ready to the first hit"
    )
    parser.add_argument("--anew", action="store_true", help="start the program anew for each page")
    parser.add_argument("--load", type=int, default=0, help="calls a second that come meanwhile")
    parser.add_argument("--only", default="", help="only pages whose address holds this; nothing is noted")
    asked = Asked(**vars(parser.parse_args()))
    with tempfile.TemporaryDirectory() as folder:
        found, gateway = measure(Path(folder), asked)
    figures = "\n".join(
        ["| the gateway | |", "|---|---:|", *(f"| {what} | {value} |" for what, value in gateway)]
    )
    text = f"{table(found)}\n\n{figures}"
    if asked.only:
        print(text)
        return
    how = f"{asked.rows:,} invocations of {DAYS} days and {asked.webhooks:,} webhooks on SQLite, embedded engine; "
    how += "each page's program started anew, " if asked.anew else "one program, "
    how += f"{asked.load} calls a second meanwhile, " if asked.load else ""
    how += f"first asked {asked.settle:g} s after it was ready. The "
    how += f"processor's time is the gateway's; more than {MOST_MS} ms of it or {MOST_KB} KB is marked."
    keep("Console pages", how, text)


if __name__ == "__main__":
    main()
