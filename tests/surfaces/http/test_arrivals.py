"""Bodies on their way: how much of them is held for all callers together."""

import asyncio
from functools import partial
from pathlib import Path

import pytest
import uvicorn
from uvicorn.server import ServerState

from postern.core.address import Allowlist
from postern.core.calls.arriving import ArrivingBytes
from postern.surfaces.http.connection import Protocol
from postern.surfaces.http.exchange import Exchange
from postern.surfaces.http.ingress import Ingress
from support.house import Hearing, House, a_house
from support.waiting import PATIENCE

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def door_of(house: House) -> Ingress:
    return Ingress(house.gateway, Allowlist.parse([]), "X-Forwarded-For")


async def test_there_is_room_for_so_much_and_whoever_finds_none_is_told_to_come_again(tmp_path: Path) -> None:
    async with a_house(tmp_path) as house:
        hook = await house.webhook()
        door = door_of(house)
        door.arriving = ArrivingBytes(900)  # a ninth is the most for one caller alone

        def arriving() -> Hearing:
            call = Hearing(door)
            call.head(
                "POST",
                b"/webhook/" + hook.url.rpartition("/")[2].encode(),
                b"",
                ((b"content-type", b"application/json"),),
                "127.0.0.1",
            )
            return call

        for _ in range(
            3
        ):  # what was taken is given back however a call ends, or the third would find no room
            first, second, third = arriving(), arriving(), arriving()
            first.body(b"{" + b" " * 79)
            second.body(b"{" + b" " * 29)
            answer = await second.heard
            assert answer.status == 503
            assert b"retry-after" in dict(answer.headers)
            third.body(b"{" + b" " * 19)
            third.abandon()
            first.body(b"}")
            first.end()
            assert (await first.heard).status == 200
        assert len(await house.history()) == 3


async def test_a_caller_that_goes_away_leaves_its_room_behind(tmp_path: Path) -> None:
    async with a_house(tmp_path) as house:
        path = "/webhook/" + (await house.webhook()).url.rpartition("/")[2]
        door = door_of(house)
        loop = asyncio.get_running_loop()
        config = uvicorn.Config(lambda *_: None, ws="none", lifespan="off", log_config=None)  # type: ignore[arg-type]
        config.load()
        make = partial(
            Protocol,
            partial(Exchange, door),
            100,
            config=config,
            server_state=ServerState(),
            app_state={},
            _loop=loop,
        )
        async with await loop.create_server(make, "127.0.0.1", 0) as server, asyncio.timeout(PATIENCE):
            _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            writer.write(
                f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n".encode() + b" " * 900
            )
            while door.arriving.held < 900:
                await asyncio.sleep(0.01)
            writer.close()
            while door.arriving.held:
                await asyncio.sleep(0.01)
