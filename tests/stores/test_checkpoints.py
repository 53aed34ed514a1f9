"""The write-ahead log begins again at its start while calls keep coming: a busy gateway must not fill the
disk with it."""

import asyncio
from pathlib import Path

import pytest

from postern.stores.sql import checkpoint
from postern.stores.store import Store
from stores.conftest import entry
from support.fresh import fresh_database
from support.recording import kept


async def test_the_log_stays_small_although_there_is_always_another_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "WORTH_IT", 256 * 1024)
    database = fresh_database(tmp_path / "postern.db")
    store = Store(f"sqlite:///{database}", ["a key of the tests, long enough"])
    assert store._checkpoints is not None
    store._checkpoints._every = 0.01
    await store.open()
    largest = 0

    async def calls() -> None:
        nonlocal largest
        for _ in range(150):
            await kept(store, entry(body=bytes(20_000)))
            largest = max(largest, (tmp_path / "postern.db-wal").stat().st_size)

    try:
        await asyncio.gather(*(calls() for _ in range(8)))
    finally:
        await store.close()
    assert 0 < largest < 8 * 1024 * 1024, "24 MB went through it"
