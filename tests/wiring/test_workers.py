"""Workers whose end is asked for at an unlucky moment."""

import asyncio
import os
import signal
import socket
from typing import Any

import pytest

from postern.wiring.workers.parent import Workers
from support.waiting import PATIENCE

pytestmark = pytest.mark.anyio


async def test_a_worker_that_is_just_being_started_is_asked_to_end_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start = asyncio.create_subprocess_exec
    began: list[asyncio.subprocess.Process] = []

    async def slowly(*_: str, **given: Any) -> asyncio.subprocess.Process:
        os.kill(os.getpid(), signal.SIGTERM)
        await workers._stopping.wait()
        began.append(await start("sleep", "60", **given))
        return began[-1]

    monkeypatch.setattr(asyncio, "create_subprocess_exec", slowly)
    workers = Workers(1, socket.socket, lambda: None)
    try:
        assert await asyncio.wait_for(workers.run(), PATIENCE) == 0
        assert [process.returncode for process in began] == [-signal.SIGTERM]
    finally:
        for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().remove_signal_handler(one)
        for process in began:
            if process.returncode is None:
                process.kill()
                await process.wait()
