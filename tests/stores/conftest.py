"""The stores, each held to the same promises: every test here runs on SQLite and on Postgres."""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from postern.core.access.audit import AuditEntry
from postern.core.deliveries.delivery import delivery_key
from postern.core.history.invocation import Delivery, Entry, Invocation, RecordedOutcome
from postern.core.moment import Time
from postern.core.webhooks.settings import NoAuthentication, Resolved, WebhookSettings
from postern.core.webhooks.stored import StoredWebhook
from postern.identity import first_id_at, new_id
from postern.stores.store import Store
from support.fresh import fresh_database
from support.recording import kept
from support.waiting import PATIENCE

NOW = 1_800_000_000.0
HeldUp = Callable[[], Awaitable[Callable[[], Awaitable[None]]]]
WEBHOOK = "wh_1"


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database with the schema in it."""
    if request.param == "postgres":
        return str(request.getfixturevalue("migrated_url"))
    return f"sqlite:///{fresh_database(tmp_path / 'postern.db')}"


@asynccontextmanager
async def opened(url: str, *keys: str) -> AsyncIterator[Store]:
    store = Store(url, [*keys] or ["a key of these tests"])
    await store.open()
    try:
        yield store
    finally:
        await store.close()


@pytest.fixture
async def store(url: str) -> AsyncIterator[Store]:
    async with opened(url) as store:
        yield store


@pytest.fixture
async def second_store(store: Store, url: str) -> AsyncIterator[Store]:
    """Another process on the same database, as far as the database can tell."""
    async with opened(url) as second:
        yield second


_numbers = iter(range(1, 1 << 30))


def entry(
    outcome: RecordedOutcome = "accepted",
    *,
    at: float = NOW,
    webhook: str = WEBHOOK,
    code: str | None = None,
    body: bytes | None = b'{"n": 1}',
    key: bytes | None = None,
    window: float = 60.0,
    secret: str | None = None,
    deadline: float | None = None,
    **invocation: Any,
) -> Entry:
    """A call as it is handed to the recorder. Ids follow one another, and the time that was given."""
    id = f"{first_id_at('inv', at)[:16]}{next(_numbers):020x}"
    fields: dict[str, Any] = {
        "status": 200, "config_version": 1, "method": "POST", "path": b"/webhook/x", "query": b"", "headers": b"[]", "body": body,
        "body_size": len(body or b""), "address": "192.0.2.1", "duration_us": 300, "matched": "main", "detail": "", "trace": b"[]",
    }  # fmt: skip
    fields |= invocation
    told = Invocation(
        id=id, webhook_id=webhook, received_at=at, outcome=outcome, code=code or outcome, **fields
    )
    made = Entry(told, secret_id=secret)
    if outcome == "accepted":
        made.delivery = Delivery(
            delivery_key(id, 1), id, webhook, 1, "queued", 0, at, {"fieldOne": "1"}, at, deadline=deadline
        )
    if key is not None:
        made.duplicate_key, made.duplicate_until = key.ljust(32, b"\0"), at + window
    return made


async def recorded(store: Store, *entries: Entry) -> list[str]:
    """Store them, in this order and in one go; their ids."""
    await asyncio.gather(*(kept(store, one) for one in entries))
    return [one.invocation.id for one in entries]


async def webhook(store: Store, id: str = WEBHOOK, code: str | None = None) -> StoredWebhook:
    settings = WebhookSettings(name="Orders", authentication=NoAuthentication())
    made = StoredWebhook(id, code or new_id("code")[:22], True, False, settings, Resolved(), 1, NOW, NOW)
    await store.webhooks.create(made, {"main": b"secret"})
    return made


@pytest.fixture
def held_up(store: Store) -> Iterator[HeldUp]:
    """``let_go = await held_up()``: a commit is under way and takes as long as ``await let_go()`` is not
    said."""
    gates: list[threading.Event] = []

    async def hold() -> Callable[[], Awaitable[None]]:
        inside, gate = threading.Event(), threading.Event()
        gates.append(gate)

        def job(_: Any) -> None:
            inside.set()
            gate.wait(PATIENCE)

        held = asyncio.create_task(store.writer.write(job))
        await asyncio.to_thread(inside.wait, PATIENCE)

        async def let_go() -> None:
            gate.set()
            await held

        return let_go

    yield hold
    for gate in gates:
        gate.set()


def deletion(webhook_id: str) -> AuditEntry:
    return AuditEntry(new_id("aud"), Time(NOW), "ada", "write", "webhook deleted", webhook_id)


def waiting_for_locks(url: str) -> int:
    """How many transactions of this database on Postgres wait for another one."""
    with psycopg.connect(url) as asking:
        asked = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        return asking.execute(asked).rowcount
