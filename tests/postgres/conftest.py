from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from postern.core.invocation import Delivery, Entry, Invocation
from postern.identity import new_id
from postern.stores.store import Store

KEYS = ["a key of the tests, long enough"]
NOW = 1_800_000_000.0


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=["sqlite", "postgres"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Every store must do the same: a test that asks for this runs once for each."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'postern.db'}"
    return str(request.getfixturevalue("migrated_url"))


@pytest.fixture
async def store(store_url: str) -> AsyncIterator[Store]:
    store = Store(store_url, KEYS)
    await store.open()
    yield store
    await store.close()


def entry(webhook_id: str = "wh_1", *, key: bytes | None = None, at: float = NOW, due: float | None = None, **changes: object) -> Entry:
    """An accepted call with its delivery, as the ingress would hand it over."""
    invocation = Invocation(
        id=new_id("inv"),
        webhook_id=webhook_id,
        received_at=at,
        outcome="accepted",
        code="accepted",
        status=200,
        config_version=1,
        method="POST",
        path=b"/webhook/abc",
        query=b"",
        headers=b'[["content-type","application/json"]]',
        body=b'{"a": 1}',
        body_size=8,
        address="127.0.0.1",
        duration_us=300,
        matched="main",
        detail="",
        trace=b"[]",
    )
    for name, value in changes.items():
        setattr(invocation, name, value)
    delivery = Delivery(f"{invocation.id}.1", invocation.id, webhook_id, 1, "queued", 0, at if due is None else due, {"fieldOne": "x"}, at)
    return Entry(invocation, delivery, duplicate_key=key, duplicate_until=at + 60)


Made = Callable[..., Entry]
