"""The gateway's end of the socket on which commands of its machine ask."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from starlette.responses import Response
from structlog.testing import capture_logs

from postern.core.history.invocation import StoreUnavailable
from postern.settings import Settings
from postern.surfaces.cli.gateway.beside import NAME, NOT_THIS_ONE, Asked, GatewaySocket
from postern.surfaces.cli.gateway.source import HttpAnswer
from postern.wiring import answering as module
from postern.wiring.answering import answering
from support.house import House, a_house


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with a_house(tmp_path) as house:
        yield house


@pytest.fixture
async def settings(house: House, tmp_path: Path) -> AsyncIterator[Settings]:
    settings = Settings({"POSTERN_DATA_DIR": str(tmp_path / "data")})
    async with answering(house.gateway, settings):
        yield settings


async def say(settings: Settings, said: bytes) -> bytes:
    reader, writer = await asyncio.open_unix_connection(str(settings.data_dir / NAME))
    writer.write(said)
    writer.write_eof()
    heard = await reader.read()
    writer.close()
    return heard


async def ask(settings: Settings, asked: Asked) -> HttpAnswer:
    return msgspec.msgpack.decode(await say(settings, msgspec.msgpack.encode(asked)), type=HttpAnswer)


WEBHOOKS = Asked("GET", "/webhooks", {}, None, {})


async def test_what_no_command_says_is_not_answered_and_harms_nobody(settings: Settings) -> None:
    with capture_logs() as lines:
        for said in (b"", b"GET / HTTP/1.1\r\n\r\n", os.urandom(1000), msgspec.msgpack.encode({"method": 1})):
            assert await say(settings, said) == b""
        _, left = await asyncio.open_unix_connection(str(settings.data_dir / NAME))
        left.write(b"\x85")
        left.close()
        assert (await ask(settings, WEBHOOKS)).status == 200
    assert lines == []


async def test_who_says_nothing_is_not_waited_for(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "READ_WITHIN", 0.05)
    reader, writer = await asyncio.open_unix_connection(str(settings.data_dir / NAME))
    assert await reader.read() == b""
    writer.close()


async def test_a_body_of_any_size_is_refused_in_words(settings: Settings) -> None:
    for size in (module.LARGEST - 100_000, module.LARGEST * 2):
        found = await ask(settings, Asked("POST", "/webhooks", {}, b" " * size, {}))
        assert (found.status, msgspec.json.decode(found.body)["code"]) == (413, "payload_too_large")


async def test_another_version_is_not_answered(settings: Settings) -> None:
    assert await ask(settings, Asked("GET", "/webhooks", {}, None, {}, "0.0.9")) == (NOT_THIS_ONE, b"")


async def test_a_command_s_settings_are_the_gateway_s_or_it_is_not_answered(
    house: House, tmp_path: Path
) -> None:
    given = {"POSTERN_DATA_DIR": str(tmp_path / "data"), "POSTERN_SECRET_KEYS": "a key that is long enough"}
    async with answering(house.gateway, Settings(given)):
        for other, status in (
            (given, 200),
            ({**given, "POSTERN_SECRET_KEYS": "another that is long enough"}, NOT_THIS_ONE),
        ):
            settings = Settings(other)
            digests = module.digests(settings)
            said = {name: digests[name] for name in settings.sources}
            assert "long enough" not in repr(said)
            assert (await ask(settings, Asked("GET", "/webhooks", {}, None, said))).status == status


@pytest.mark.parametrize(
    ("trouble", "status", "code", "logged"),
    [
        (StoreUnavailable("locked"), 503, "temporarily_unavailable", []),
        (ZeroDivisionError("a defect"), 500, "internal_error", ["a command failed"]),
    ],
)
async def test_what_goes_wrong_is_a_problem_and_a_defect_is_logged(
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    trouble: Exception,
    status: int,
    code: str,
    logged: list[str],
) -> None:
    async def fails(*_: Any) -> Response:
        raise trouble

    monkeypatch.setattr(module, "inside", SimpleNamespace(ask=fails, COMMAND_LINE=None))
    with capture_logs() as lines:
        found = await ask(settings, WEBHOOKS)
    assert (found.status, msgspec.json.decode(found.body)["code"]) == (status, code)
    assert [line["event"] for line in lines] == logged


async def test_what_was_begun_is_finished_before_the_gateway_ends(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, may_end = asyncio.Event(), asyncio.Event()

    async def takes_its_time(*_: Any) -> Response:
        begun.set()
        await may_end.wait()
        return Response(b"done")

    monkeypatch.setattr(module, "inside", SimpleNamespace(ask=takes_its_time, COMMAND_LINE=None))
    settings = Settings({"POSTERN_DATA_DIR": str(tmp_path / "data")})
    async with answering(house.gateway, settings):
        asked = asyncio.create_task(ask(settings, WEBHOOKS))
        await begun.wait()
        asyncio.get_running_loop().call_later(0.05, may_end.set)
    assert may_end.is_set(), "it was waited for"
    assert (await asked).body == b"done"
    assert GatewaySocket(settings.data_dir, {}).ask(WEBHOOKS) is None


def test_the_socket_is_closed_to_others_from_its_first_moment(tmp_path: Path) -> None:
    usual = os.umask(0)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            module._bind(listener, str(tmp_path / NAME))
            assert (tmp_path / NAME).stat().st_mode & 0o777 == 0o600
        assert os.umask(0) == 0, "other files are made as before"
    finally:
        os.umask(usual)
