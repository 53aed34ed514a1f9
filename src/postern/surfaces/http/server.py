"""The HTTP server: uvicorn with connections that a public address needs (``connection.py``), and an orderly
end."""

import asyncio
import contextlib
import signal
import socket
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import uvicorn
from uvicorn.server import ServerState

from postern.observe.logs import log
from postern.surfaces.http.connection import Connection, Connections, MakeExchange
from postern.surfaces.http.crowding import most_connections, raise_descriptor_limit

DRAIN_SECONDS = 25
UNREAD_IN_KERNEL = 64 * 1024


class Server(uvicorn.Server):
    """Ends on SIGINT, SIGTERM and SIGHUP: lets what is under way finish, stops listening, and returns."""

    def __init__(
        self,
        config: uvicorn.Config,
        body_timeout: float,
        when_up: Callable[[], None],
        still_waiting: Callable[[], int],
    ) -> None:
        super().__init__(config)
        self._body_timeout = body_timeout
        self._when_up = when_up
        self._still_waiting = still_waiting

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._when_up()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + DRAIN_SECONDS
        # The answers to waiting callers come in over this same listener, so it stays open until they have them.
        while self._still_waiting() and not self.force_exit and loop.time() < end:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        self.config.timeout_graceful_shutdown = max(1, int(end - loop.time()))
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        # uvicorn's own raises the signal again afterwards, which would end the process before it has closed
        # its store.
        loop = asyncio.get_running_loop()
        ending = [signal.SIGINT, signal.SIGTERM]
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as `nohup` leaves it
            ending.append(signal.SIGHUP)
        for signum in ending:
            loop.add_signal_handler(signum, self._end)
        pass_over_others(loop)
        sweeper = loop.create_task(self._sweep())
        try:
            yield
        finally:
            sweeper.cancel()

    def _end(self) -> None:
        if self.should_exit:
            self.force_exit = True  # asked twice: do not wait for slow callers
        self.should_exit = True

    async def _sweep(self) -> None:
        """One look a second at all connections costs less than a timer for each."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(1.0)
            for connection in list(self.server_state.connections):
                if isinstance(connection, Connection):
                    connection.look(loop.time(), self._body_timeout)


def pass_over_others(loop: asyncio.AbstractEventLoop) -> None:
    """Ignores the signals at which other servers open their logs again. By default they would end the process at
    once, with calls half answered."""
    for signum in (signal.SIGUSR1, signal.SIGUSR2):
        loop.add_signal_handler(
            signum, partial(log.warning, "a signal without a meaning is ignored", signal=signum.name)
        )


def listen(host: str, port: int, shared: bool = False) -> socket.socket:
    """``shared``: the kernel deals the connections out among all sockets that were opened so on one
    address."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Each connection has it from here. Otherwise the kernel keeps megabytes of an answer for a caller that reads nothing.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, UNREAD_IN_KERNEL)
    if shared:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        listener.bind((host, port))
    except OSError:
        listener.close()
        raise
    listener.set_inheritable(True)
    return listener


async def _nothing(*_: Any) -> None: ...


async def serve(
    for_calls: MakeExchange,
    for_the_app: MakeExchange,
    listener: socket.socket,
    body_timeout: float,
    over_https: bool,
    when_up: Callable[[], None],
    still_waiting: Callable[[], int],
) -> None:
    """``still_waiting`` is asked when the end has come: how many callers cannot be sent away yet."""
    raise_descriptor_limit()
    shared = Connections(for_calls, for_the_app, most_connections())
    loop = asyncio.get_running_loop()

    def connection(server_state: ServerState, **_: Any) -> Connection:
        return Connection(shared, server_state, loop)

    config = uvicorn.Config(
        _nothing,  # it wants one; the exchanges have the real one
        http=connection,  # type: ignore[arg-type] # it makes one, as a class would
        ws="none",
        lifespan="off",
        interface="asgi3",
        access_log=False,
        log_config=None,
        log_level="critical",
        proxy_headers=False,
        server_header=False,
        backlog=4096,
        headers=[("strict-transport-security", "max-age=31536000")] if over_https else [],
    )
    await Server(config, body_timeout, when_up, still_waiting).serve(sockets=[listener])
