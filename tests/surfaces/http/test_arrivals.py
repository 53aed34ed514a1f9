"""Calls on their way: how much of their bodies is held, and that nothing of them stays."""

import asyncio
import gc
import socket
import weakref
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from uvicorn.server import ServerState

from postern.core.address import NOBODY, ClientAddresses
from postern.surfaces.http import app_exchange
from postern.surfaces.http.app_exchange import REQUESTS_AT_ONCE, AppExchange, AppTurns
from postern.surfaces.http.call_exchange import CallExchange
from postern.surfaces.http.connection import Connection, Connections
from postern.surfaces.http.reader import Request
from postern.usecases.calls.intake import Intake
from support.house import House, a_house
from support.waiting import PATIENCE


def intake_of(house: House) -> Intake:
    return Intake(house.gateway, ClientAddresses(NOBODY, "X-Forwarded-For"))


async def test_a_caller_that_goes_away_leaves_its_room_behind(tmp_path: Path) -> None:
    async with a_house(tmp_path) as house:
        path = "/webhook/" + (await house.webhook()).url.rpartition("/")[2]
        intake = intake_of(house)
        loop = asyncio.get_running_loop()
        shared = Connections(partial(CallExchange, intake), partial(CallExchange, intake), 100)
        make = partial(Connection, shared, ServerState(), loop)
        async with await loop.create_server(make, "127.0.0.1", 0) as server, asyncio.timeout(PATIENCE):
            _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            writer.write(
                f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n".encode() + b" " * 900
            )
            while intake.arriving.held < 900:
                await asyncio.sleep(0.01)
            writer.close()
            while intake.arriving.held:
                await asyncio.sleep(0.01)


async def test_what_was_judged_is_not_kept_until_its_commit(tmp_path: Path) -> None:
    """All calls that share a commit wait for it, and the headers are the largest part of most calls."""
    freed: list[bytes] = []

    class Value(bytes):
        def __del__(self) -> None:
            freed.append(bytes(self))

    async with a_house(tmp_path) as house:
        hook = await house.webhook()
        waiting: list[Any] = []
        house.gateway.store.record = lambda *given: waiting.append(given)  # type: ignore[method-assign]
        value = Value(b"a note" * 100)  # longer than what is remembered for the next call
        path = b"/webhook/" + hook.url.rpartition("/")[2].encode()
        headers = ((b"content-type", b"application/json"), (b"x-note", value))
        request = Request(b"POST", path, b"", headers, dict(headers), "1.1", True, False, False)
        line: Any = SimpleNamespace(client=("127.0.0.1", 40000))
        exchange = CallExchange(intake_of(house), line, request)
        del headers, request, value
        exchange.begin()
        exchange.take(b"{}")
        exchange.finish()
        assert len(waiting) == 1
        assert freed == [b"a note" * 100]


async def test_a_connection_that_is_gone_is_not_left_to_the_collector(tmp_path: Path) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"o", "more_body": True})
        if scope["path"] == "/whole":
            await send({"type": "http.response.body", "body": b"k"})
        while (await receive())["type"] != "http.disconnect":
            pass

    async with a_house(tmp_path) as house:
        path = "/webhook/" + (await house.webhook()).url.rpartition("/")[2]
        shared = Connections(
            partial(CallExchange, intake_of(house)), partial(AppExchange, app, AppTurns()), 100
        )
        loop = asyncio.get_running_loop()
        for target, sent, answered in (
            (path, b"", False),
            (path, b"{}", True),
            (path, b" " * 900, False),
            ("/whole", b" " * 1000, True),
            ("/whole", b"", False),
            ("/begun", b"", False),
        ):
            length = len(sent) if answered else 1000
            ends = asyncio.Event()
            ours, theirs = socket.socketpair()
            theirs.setblocking(False)
            gc.collect()
            gc.disable()
            try:
                state = ServerState()
                transport, connection = await loop.connect_accepted_socket(
                    lambda state=state: Connection(shared, state, loop),  # type: ignore[misc]
                    ours,
                )
                await loop.sock_sendall(
                    theirs,
                    f"POST {target} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n".encode() + sent,
                )
                received = b""
                while answered and not received.endswith((b"ok", b"}")):
                    received += await loop.sock_recv(theirs, 10_000)
                gone = weakref.ref(connection, lambda _, ends=ends: ends.set())  # type: ignore[misc]
                del transport, connection
                theirs.close()
                async with asyncio.timeout(PATIENCE):
                    await ends.wait()
                assert gone() is None
            finally:
                gc.enable()


async def test_few_requests_of_the_application_are_worked_on_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, may_end = 0, asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        nonlocal begun
        while (await receive())["more_body"]:
            pass
        begun += 1
        await may_end.wait()
        much = b"x" * 10_000_000 if scope["path"] == "/much" else b""
        length = b"%d" % (2 + len(much))
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]})
        await send({"type": "http.response.body", "body": much, "more_body": True})
        await send({"type": "http.response.body", "body": b"ok"})

    monkeypatch.setattr(app_exchange, "LONGEST_TURN", 3600.0)
    async with a_house(tmp_path) as house, asyncio.timeout(PATIENCE):
        path = "/webhook/" + (await house.webhook()).url.rpartition("/")[2]
        shared = Connections(
            partial(CallExchange, intake_of(house)), partial(AppExchange, app, AppTurns()), 100
        )
        loop = asyncio.get_running_loop()
        server = await loop.create_server(partial(Connection, shared, ServerState(), loop), "127.0.0.1", 0)

        writers = []

        async def ask(line: str, body: str = "{}") -> asyncio.StreamReader:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            writers.append(writer)
            writer.write(f"{line} HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{body}".encode())
            return reader

        async def is_answered(reader: asyncio.StreamReader) -> bool:
            return (await reader.readline()).startswith(b"HTTP/1.1 200")

        async with server:
            asked = [await ask("POST /slow", "{") for _ in range(REQUESTS_AT_ONCE + 3)]
            may_end.set()
            assert await is_answered(
                await ask("POST /slow")
            )  # those whose bodies are to come do not keep it waiting
            may_end.clear()
            for writer in writers[: REQUESTS_AT_ONCE + 3]:
                writer.write(b"}")
            assert await is_answered(await ask(f"POST {path}"))
            assert begun == 1 + REQUESTS_AT_ONCE
            asked.append(await ask("POST /slow"))
            writers[-1].close()
            assert await is_answered(await ask(f"POST {path}"))
            may_end.set()
            assert all([await is_answered(one) for one in asked[:-1]])
            assert begun == 1 + REQUESTS_AT_ONCE + 3  # and not for the one who has left
            for _ in range(REQUESTS_AT_ONCE):
                assert await is_answered(await ask("POST /much"))
            assert await is_answered(
                await ask("POST /slow")
            )  # those who do not read on do not keep it waiting
            may_end.clear()
            monkeypatch.setattr(app_exchange, "LONGEST_TURN", 0.0)
            begun = 0
            asked = [await ask("POST /slow") for _ in range(REQUESTS_AT_ONCE + 3)]
            while begun < REQUESTS_AT_ONCE + 3:
                await asyncio.sleep(0.01)
            may_end.set()
            assert all([await is_answered(one) for one in asked])
            for writer in writers:
                writer.close()
