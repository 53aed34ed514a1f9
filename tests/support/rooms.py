"""A gateway in the test's own process, on a database of its own, with a clock that the test moves."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

from postern import presets
from postern.core.access.accounts import Actor
from postern.stores.store import Store
from postern.usecases.ports import PresetShelf
from postern.usecases.runtime.directory import Directory
from postern.usecases.runtime.gateway import Gateway
from postern.usecases.webhooks.compiling import compile_webhook

ADMIN = Actor("Ada", "admin", "usr_ada")
EDITOR = Actor("Edgar", "write", "usr_edgar")
READER = Actor("Rita", "read", "usr_rita")


class Clock:
    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


@asynccontextmanager
async def gateway_on(database: Path | str) -> AsyncIterator[tuple[Gateway, Clock]]:
    """``gateway_on(tmp_path)`` makes a SQLite database there; a text is the URL of any other."""
    url = database if isinstance(database, str) else f"sqlite:///{database / 'postern.db'}"
    store = Store(url, ["a key of the tests, long enough"])
    await store.open(migrate=True)
    clock = Clock()
    gateway = Gateway(
        store=store,
        directory=Directory(store.webhooks, compile_webhook),
        presets=cast(PresetShelf, presets),
        base_url="http://127.0.0.1:8080",
        callback_url="http://127.0.0.1:8080",
        response_keys=[b"response key"],
        clock=clock,
    )
    try:
        await gateway.directory.refresh()
        yield gateway, clock
    finally:
        await store.close()
