"""A gateway in the test's own process, on a database of its own, with a clock that the test moves."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from postern.core.access.accounts import Actor
from postern.core.limits import Limits
from postern.stores.sql import schema
from postern.stores.store import Store
from postern.usecases.runtime.directory import Directory
from postern.usecases.runtime.gateway import Gateway
from postern.usecases.runtime.live_feed import LiveFeed
from postern.usecases.runtime.process import Runtime
from postern.usecases.runtime.site import Site
from postern.usecases.webhooks.compiling import compile_webhook
from support.fresh import fresh_database

ADMIN = Actor("Ada", "admin", "usr_ada")
READER = Actor("Rita", "read", "usr_rita")


class Clock:
    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


@asynccontextmanager
async def gateway_on(database: Path | str) -> AsyncIterator[tuple[Gateway, Clock]]:
    """``gateway_on(tmp_path)`` makes a SQLite database there; a text is the URL of any other."""
    url = database if isinstance(database, str) else f"sqlite:///{fresh_database(database / 'postern.db')}"
    schema.prepare(url, migrates=True)
    store = Store(url, ["a key of the tests, long enough"])
    await store.open()
    clock = Clock()
    gateway = Gateway(
        store=store,
        site=Site("http://127.0.0.1:8080", "http://127.0.0.1:8080", [b"response key"]),
        runtime=Runtime(
            Directory(store.webhooks, compile_webhook), LiveFeed(store.history, clock), Limits(clock)
        ),
        clock=clock,
    )
    try:
        await gateway.runtime.directory.refresh()
        yield gateway, clock
    finally:
        await store.close()
