"""The gateway's end of the socket on which commands of its machine ask."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from postern.settings import Settings
from postern.surfaces.cli.gateway.beside import NAME, GatewaySocket, digests
from postern.surfaces.cli.gateway.source import HttpAnswer, HttpQuestion
from postern.wiring import answering as module
from postern.wiring.answering import answering
from support.house import House, a_house

KEYS = {"POSTERN_SECRET_KEYS": "a key that is long enough"}


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with a_house(tmp_path) as house:
        yield house


def settings_of(folder: Path, **given: str) -> Settings:
    return Settings({"POSTERN_DATA_DIR": str(folder / "data"), **given})


async def ask(settings: Settings, method: str = "GET", body: bytes | None = None) -> HttpAnswer | None:
    known = digests(settings)
    gateway = GatewaySocket(settings.data_dir, {name: known[name] for name in settings.sources})
    return await asyncio.to_thread(gateway.ask, HttpQuestion(method, "/webhooks", {}, body))


async def test_a_command_of_another_version_is_not_answered(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_of(tmp_path)
    async with answering(house.gateway, settings):
        assert (await ask(settings) or HttpAnswer(0, b"")).status == 200
        line = httpx2.AsyncHTTPTransport(uds=str(settings.data_dir / NAME))
        async with httpx2.AsyncClient(transport=line) as other_program:
            assert (await other_program.get("http://localhost/api/v1/webhooks")).status_code == 200
        monkeypatch.setattr(module, "__version__", "0.0.9")
        assert await ask(settings) is None


async def test_a_command_s_settings_are_the_gateway_s_or_it_is_not_answered(
    house: House, tmp_path: Path
) -> None:
    async with answering(house.gateway, settings_of(tmp_path, **KEYS)):
        assert await ask(settings_of(tmp_path, **KEYS)) is not None
        assert await ask(settings_of(tmp_path)) is not None
        other = settings_of(tmp_path, POSTERN_SECRET_KEYS="another that is long enough")
        assert await ask(other) is None
        assert "long enough" not in repr(digests(other))


async def test_a_body_that_is_too_large_is_refused_in_words(house: House, tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    async with answering(house.gateway, settings):
        found = await ask(settings, "POST", b" " * 20_000_000)
        assert found is not None and found.status == 413 and b"payload_too_large" in found.body


async def test_what_was_begun_is_finished_before_the_gateway_ends(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, may_end = asyncio.Event(), asyncio.Event()

    async def takes_its_time(scope: Scope, receive: Receive, send: Send) -> None:
        begun.set()
        await may_end.wait()
        await Response(b"done")(scope, receive, send)

    monkeypatch.setattr(module, "make_api", lambda _: takes_its_time)
    settings = settings_of(tmp_path)
    async with answering(house.gateway, settings):
        asked = asyncio.create_task(ask(settings))
        await begun.wait()
        asyncio.get_running_loop().call_later(0.05, may_end.set)
    assert may_end.is_set(), "it was waited for"
    assert await asked == HttpAnswer(200, b"done")
    assert await ask(settings) is None


def test_the_socket_is_closed_to_others_from_its_first_moment(tmp_path: Path) -> None:
    usual = os.umask(0)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            module._bind(listener, str(tmp_path / NAME))
            assert (tmp_path / NAME).stat().st_mode & 0o777 == 0o600
        assert os.umask(0) == 0, "other files are made as before"
    finally:
        os.umask(usual)
