import asyncio

import pytest
from starlette.requests import Request
from starlette.types import Message

from postern.core.problems import Refused
from postern.surfaces.leaving import while_connected


def request(messages: "asyncio.Queue[Message]") -> Request:
    return Request({"type": "http", "method": "GET", "path": "/", "headers": []}, messages.get)


async def never(begun: asyncio.Event, ended: asyncio.Event) -> None:
    begun.set()
    try:
        await asyncio.Event().wait()
    finally:
        ended.set()


async def leave() -> None:
    messages: asyncio.Queue[Message] = asyncio.Queue()
    begun, ended = asyncio.Event(), asyncio.Event()
    asked = asyncio.create_task(while_connected(request(messages), never(begun, ended)))
    messages.put_nowait({"type": "http.request", "body": b"", "more_body": False})
    await begun.wait()
    messages.put_nowait({"type": "http.disconnect"})
    with pytest.raises(Refused):
        await asked
    await ended.wait()


async def stay() -> str:
    return await while_connected(request(asyncio.Queue()), asyncio.sleep(0, "found"))


def test_work_ends_when_its_client_leaves_and_not_before() -> None:
    asyncio.run(leave())
    assert asyncio.run(stay()) == "found"
