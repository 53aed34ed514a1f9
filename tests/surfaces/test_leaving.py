import asyncio

import pytest
from starlette.requests import Request
from starlette.types import Message

from postern.core.problems import Refused
from postern.surfaces.streaming import while_connected


async def test_work_ends_when_its_client_leaves_and_not_before() -> None:
    messages: asyncio.Queue[Message] = asyncio.Queue()
    request = Request({"type": "http", "method": "GET", "path": "/", "headers": []}, messages.get)
    begun, ended = asyncio.Event(), asyncio.Event()

    async def never() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    assert await while_connected(request, asyncio.sleep(0, "found")) == "found"
    asked = asyncio.create_task(while_connected(request, never()))
    messages.put_nowait({"type": "http.request", "body": b"", "more_body": False})
    await begun.wait()
    messages.put_nowait({"type": "http.disconnect"})
    with pytest.raises(Refused):
        await asked
    await ended.wait()
