"""The HTTP server: uvicorn with the limits a public address needs, and an orderly end.

What uvicorn leaves to a proxy in front is enforced here, because there may be none: header size, time to send a
request, idle connections, and the bytes of a body that nobody will read any more.
"""

import asyncio
import contextlib
import signal
import socket
from collections.abc import Callable, Iterator
from typing import Any

import httptools
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from postern.core import answer as say

LARGEST_HEAD = 32 * 1024
MOST_DISCARDED = 64 * 1024 * 1024
IDLE_SECONDS = 75
DRAIN_SECONDS = 25


class Protocol(HttpToolsProtocol):
    """One connection. Everything here is a limit; what a request means is the application's."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.began: float | None = self.loop.time()
        """Since when a request has been on its way; None while none is."""
        self._in_head = True
        self._head = 0
        self._chunk = 0
        self._discarded = 0
        self._refusal = "malformed_request"

    def data_received(self, data: bytes) -> None:
        self._chunk = len(data)
        super().data_received(data)
        if self._in_head:
            self._head += len(data)
            if self._head > LARGEST_HEAD:
                self.refuse("headers_too_large")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.began = self.loop.time()
        self._in_head = True
        self._head = self._discarded = 0

    def on_headers_complete(self) -> None:
        self._in_head = False
        if (
            self._head + self._chunk > LARGEST_HEAD
            and len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers) > LARGEST_HEAD
        ):
            self._refusal = "headers_too_large"
            raise httptools.HttpParserError("headers too large")
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        if self.cycle.response_complete:
            # Refused before it was read: it may finish sending, so that it can read why, but not for ever.
            self._discarded += len(body)
            if self._discarded > MOST_DISCARDED:
                self.transport.abort()
            return
        super().on_body(body)

    def on_message_complete(self) -> None:
        self.began = None
        super().on_message_complete()

    def eof_received(self) -> Any:
        """A caller that has said everything may still listen: it gets its answer, and then the connection ends."""
        if self.cycle is None or self.cycle.response_complete or self.cycle.more_body:
            return False
        self.cycle.keep_alive = False
        return True

    def send_400_response(self, msg: str) -> None:
        self.refuse(self._refusal)

    def refuse(self, code: str) -> None:
        """The answer to what is not a request: said once, and the connection closed."""
        if self.transport.is_closing():
            return
        if self.cycle is None or self.cycle.response_complete or not self.cycle.response_started:
            answer = say.refusal(code)
            head = [f"HTTP/1.1 {answer.status} {code}\r\n".encode(), b"connection: close\r\n"]
            head += [name + b": " + value + b"\r\n" for name, value in answer.headers]
            self.transport.write(b"".join([*head, f"content-length: {len(answer.body)}\r\n\r\n".encode(), answer.body]))
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.transport.close()


class Server(uvicorn.Server):
    """Ends on SIGINT and SIGTERM: stops listening, lets what is under way finish, and returns."""

    def __init__(self, config: uvicorn.Config, body_timeout: float, when_up: Callable[[], None], when_ending: Callable[[], None]) -> None:
        super().__init__(config)
        self._body_timeout = body_timeout
        self._when_up = when_up
        self._when_ending = when_ending

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._when_up()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        # uvicorn's own raises the signal again afterwards, which would end the process before it has closed its store.
        loop = asyncio.get_running_loop()
        for one in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(one, self._end)
        sweeper = loop.create_task(self._sweep())
        try:
            yield
        finally:
            sweeper.cancel()

    def _end(self) -> None:
        if self.should_exit:
            self.force_exit = True  # asked twice: do not wait for slow callers
        self.should_exit = True
        self._when_ending()

    async def _sweep(self) -> None:
        """One look a second at all connections costs less than a timer for each."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(1.0)
            too_old = loop.time() - self._body_timeout
            for connection in list(self.server_state.connections):
                if isinstance(connection, Protocol) and connection.began is not None and connection.began < too_old:
                    connection.refuse("request_timeout")


def listen(host: str, port: int, shared: bool = False) -> socket.socket:
    """``shared``: the kernel deals the connections out among all sockets that were opened so on one address."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if shared:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    listener.bind((host, port))
    listener.set_inheritable(True)
    return listener


async def serve(
    app: Callable[..., Any], listener: socket.socket, body_timeout: float, when_up: Callable[[], None], when_ending: Callable[[], None]
) -> None:
    """``when_ending`` ends what would otherwise go on for ever: the server waits for every answer to be whole."""
    config = uvicorn.Config(
        app,
        http=Protocol,
        ws="none",
        lifespan="off",
        interface="asgi3",
        access_log=False,
        log_config=None,
        log_level="critical",
        proxy_headers=False,
        server_header=False,
        backlog=4096,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=DRAIN_SECONDS,
    )
    await Server(config, body_timeout, when_up, when_ending).serve(sockets=[listener])
