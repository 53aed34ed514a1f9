"""A real HTTP server for tests, small enough to misbehave on purpose: it answers whatever the test's function
says."""

import asyncio
import json
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

from support.listening import listen_no_more


@dataclass
class Received:
    """One request as it arrived."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Reply:
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    def encode(self) -> bytes:
        head = {"Content-Length": str(len(self.body)), **self.headers}
        lines = [f"HTTP/1.1 {self.status} Said", *(f"{name}: {value}" for name, value in head.items())]
        return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + self.body


Answer = Callable[[Received], "Reply | Awaitable[Reply] | Raw"]


class Raw:
    """An answer written by hand: what a broken or hostile server would send."""

    def __init__(self, write: Callable[[asyncio.StreamWriter], Awaitable[None]]) -> None:
        self.write = write


@dataclass
class StandIn:
    url: str
    port: int
    received: list[Received] = field(default_factory=list)


@asynccontextmanager
async def stand_in(
    answer: Answer, tls: ssl.SSLContext | None = None, port: int = 0
) -> AsyncIterator[StandIn]:
    """Serves on a free port of 127.0.0.1 until the block ends."""
    open_connections: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        open_connections[asyncio.create_task(connection(reader, writer))] = writer

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                method, target, _ = head[0].split(" ", 2)
                headers = {
                    line.partition(":")[0].lower(): line.partition(":")[2].strip()
                    for line in head[1:]
                    if line
                }
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                received = Received(method, target, headers, body)
                server.received.append(received)
                reply = answer(received)
                if isinstance(reply, Raw):
                    await reply.write(writer)
                    return
                if not isinstance(reply, Reply):
                    reply = await reply
                writer.write(reply.encode())
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    listener = await asyncio.start_server(connected, "127.0.0.1", port, ssl=tls)
    bound = listener.sockets[0].getsockname()[1]
    server = StandIn(f"http{'s' if tls else ''}://127.0.0.1:{bound}", bound)
    try:
        yield server
    finally:
        await listen_no_more(listener)
        for task, writer in open_connections.items():
            task.cancel()
            writer.transport.abort()  # what is closed stays open until its peer has read all of it
        await asyncio.gather(*open_connections, return_exceptions=True)
        await asyncio.gather(
            *(writer.wait_closed() for writer in open_connections.values()), return_exceptions=True
        )


@contextmanager
def nobody_accepts() -> Iterator[str]:
    """The URL of a port whose queue is full: the kernel answers no more attempts to connect."""
    with ExitStack() as stack:
        full, *waiting = [stack.enter_context(socket.socket()) for _ in range(5)]
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(full.getsockname())
        yield f"http://127.0.0.1:{full.getsockname()[1]}/"
