"""How long a connection may rest between requests: longer than the proxies in front, which close theirs after 60
seconds, or a call could meet the end of its connection."""

import asyncio
from functools import partial
from typing import Any

from uvicorn.server import ServerState

from postern.surfaces.http.app_exchange import AppExchange
from postern.surfaces.http.connection import IDLE_SECONDS, Connection, Connections
from support.waiting import PATIENCE


async def app(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


def test_a_connection_rests_75_seconds_and_is_closed_then() -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        made: list[Connection] = []

        def connection() -> Connection:
            answering = partial(AppExchange, app)
            made.append(Connection(Connections(answering, answering, 100), ServerState(), loop))
            return made[-1]

        server = await loop.create_server(connection, "127.0.0.1", 0)
        async with server, asyncio.timeout(PATIENCE):
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            for _ in range(2):
                writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                asked = loop.time()
                assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 204")
                made[0].look(asked + IDLE_SECONDS, patience=5)
            assert IDLE_SECONDS == 75
            made[0].look(loop.time() + IDLE_SECONDS + 1, patience=5)
            assert await reader.read() == b""
            writer.close()
            await writer.wait_closed()

    asyncio.run(story())
