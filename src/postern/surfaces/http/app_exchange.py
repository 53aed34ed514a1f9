"""A request for the application (pages, REST, MCP) and its answer, over ASGI. The cycle is uvicorn's."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, cast
from urllib.parse import unquote

from starlette.types import Scope
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from postern.surfaces.http.connection import Connection
from postern.surfaces.http.reader import Request

App = Callable[..., Any]

REQUESTS_AT_ONCE = 8
LONGEST_TURN = 0.025
"""Seconds: a stream, or a request that waits, keeps nobody else waiting for longer."""

_silent = logging.getLogger("uvicorn.error")


class AppTurns:
    """Few requests are worked on at a time: a call at a webhook must not wait for a step of each of those that are sent at once."""

    def __init__(self) -> None:
        self._free = asyncio.Semaphore(REQUESTS_AT_ONCE)

    async def take(self) -> Callable[[], None]:
        """Waits for a turn, and returns what ends it. It ends by itself if it takes long."""
        await self._free.acquire()
        timer = asyncio.get_running_loop().call_later(LONGEST_TURN, lambda: end())
        ended = False

        def end() -> None:
            nonlocal ended
            if not ended:
                ended = True
                timer.cancel()
                self._free.release()

        return end


class AppExchange:
    """Runs uvicorn's cycle, and is its transport as well."""

    listens_on = False

    def __init__(self, app: App, turns: AppTurns, line: Connection, request: Request) -> None:
        self._line = line
        self._turns = turns
        self._app = app
        self._cycle: RequestResponseCycle | None = RequestResponseCycle(
            scope=cast(Any, _scope(line, request)),
            transport=self,  # type: ignore[arg-type] # it has what a cycle asks of one
            flow=line.flow,
            logger=_silent,
            access_logger=_silent,
            access_log=False,
            default_headers=line.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=request.asks_first,
            keep_alive=request.keep_alive,
            on_response=self._answered,
        )

    @property
    def keep_alive(self) -> bool:
        return self._cycle is not None and self._cycle.keep_alive

    @keep_alive.setter
    def keep_alive(self, keep_alive: bool) -> None:
        if self._cycle is not None:
            self._cycle.keep_alive = keep_alive

    @property
    def started(self) -> bool:
        return self._cycle is None or self._cycle.response_started

    def begin(self) -> None:
        task = asyncio.get_running_loop().create_task(self._run())
        self._line.tasks.add(task)
        task.add_done_callback(self._line.tasks.discard)

    async def _run(self) -> None:
        end_turn = await self._turns.take()
        cycle = self._cycle

        async def app(scope: Any, receive: Any, send: Any) -> None:
            async def receive_in_turn() -> Any:
                nonlocal end_turn
                if cycle is None or cycle.body or not cycle.more_body:
                    return await receive()
                end_turn()  # the body may never come: nobody else waits for it
                message = await receive()
                end_turn = await self._turns.take()
                return message

            async def send_in_turn(message: Any) -> None:
                if self._line.flow.write_paused:
                    end_turn()  # its caller may never read
                await send(message)

            await self._app(scope, receive_in_turn, send_in_turn)

        try:
            if cycle is not None:  # its caller is still there
                await cycle.run_asgi(app)
        finally:
            end_turn()

    def take(self, piece: bytes) -> bool:
        cycle = self._cycle
        if cycle is None:
            return False
        cycle.body += piece
        if len(cycle.body) > HIGH_WATER_LIMIT:
            self._line.flow.pause_reading()
        cycle.message_event.set()
        return True

    def finish(self) -> None:
        if self._cycle is not None:
            self._cycle.more_body = False
            self._cycle.message_event.set()

    def drop(self) -> None:
        cycle, self._cycle = self._cycle, None
        if cycle is not None:
            cycle.disconnected = True
            cycle.message_event.set()

    def _answered(self) -> None:
        keep_alive = self.keep_alive
        if self._cycle is not None:
            self._cycle = None  # it refers to us: the garbage collector alone would free the two
            self._line.answered(keep_alive)

    def write(self, data: bytes) -> None:
        self._line.write(data)

    def is_closing(self) -> bool:
        return self._cycle is None or self._line.closing

    def close(self) -> None:
        """Called after the last answer, of which ``_answered`` hears next, or after one that broke off."""
        if self._cycle is not None and not self._cycle.response_complete:
            self._cycle = None
            self._line.answered(keep_alive=False)


def _scope(line: Connection, request: Request) -> Scope:
    path = request.path.decode("ascii")
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": request.version,
        "server": line.server,
        "client": line.client,
        "scheme": "http",
        "method": request.method.decode("ascii"),
        "root_path": "",
        "path": unquote(path) if "%" in path else path,
        "raw_path": request.path,
        "query_string": request.query,
        "headers": list(request.headers),
        "state": {},
    }
