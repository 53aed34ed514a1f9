"""Listening to the other processes while the database is away."""

import asyncio

import pytest
from sqlalchemy.engine import make_url
from structlog.testing import capture_logs

from postern.stores.sql import wake
from support.waiting import PATIENCE, free_port


async def test_a_database_that_is_away_is_a_line_of_the_log_once_a_minute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(wake, "LONGEST_PAUSE", 0.01)
    heard: asyncio.Queue[str] = asyncio.Queue()
    nobody = make_url(f"postgresql://postern@127.0.0.1:{free_port()}/postern")
    with capture_logs() as lines:
        listening = asyncio.create_task(wake.listen(nobody, heard.put_nowait))
        async with asyncio.timeout(PATIENCE):
            assert [await heard.get() for _ in range(4)] == [wake.DEAF] * 4
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)
    assert [line["event"] for line in lines] == ["no notifications of other processes; polling instead"]
