"""The gateway answers commands that are typed on its machine (``surfaces/cli/gateway/beside.py``)."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import msgspec
from starlette.responses import Response

from postern import __version__
from postern.core.history.invocation import StoreUnavailable
from postern.core.problems import Refused
from postern.observe.logs import Log
from postern.settings import Settings
from postern.surfaces.cli.gateway.beside import NAME, NOT_THIS_ONE, Asked, digests
from postern.surfaces.cli.gateway.source import HttpAnswer, HttpQuestion
from postern.surfaces.rest import inside
from postern.surfaces.rest.framework.bodies import LARGEST_CONFIGURATION
from postern.surfaces.rest.framework.problems import STORE_AWAY, problem_response
from postern.usecases.runtime.gateway import Gateway

LARGEST = LARGEST_CONFIGURATION + 64 * 1024
"""What a command may say: the largest body, and what is around it."""

READ_WITHIN = 10.0
FINISH_WITHIN = 10.0

log = Log()


@asynccontextmanager
async def answering(gateway: Gateway, settings: Settings) -> AsyncIterator[None]:
    """Where no socket can be had, because the folder's name is too long for one or it lies where there are none,
    commands open the database themselves."""
    own = digests(settings)
    under_way: set[asyncio.Task[None]] = set()

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(_answer(gateway, own, reader, writer))
        under_way.add(task)
        task.add_done_callback(under_way.discard)

    place = settings.data_dir / NAME
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        try:
            place.unlink(missing_ok=True)  # of a process that was killed; whoever serves holds the folder
            _bind(listener, str(place))
        except OSError:
            yield
            return
        server = await asyncio.start_unix_server(one, sock=listener)
        try:
            yield
        finally:
            with suppress(OSError):
                place.unlink(missing_ok=True)
            server.close()
            if under_way:
                _, unfinished = await asyncio.wait(under_way, timeout=FINISH_WITHIN)
                for task in unfinished:
                    task.cancel()


def _bind(listener: socket.socket, place: str) -> None:
    """Closed to others from the first moment: who can connect may do everything."""
    before = os.umask(0o177)
    try:
        listener.bind(place)
    finally:
        os.umask(before)


async def _answer(
    gateway: Gateway, own: dict[str, str], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    try:
        async with asyncio.timeout(READ_WITHIN):
            said = await _read(reader)
        answer = await _answer_to(gateway, own, said)
        writer.write(msgspec.msgpack.encode(answer))
        await writer.drain()
    except (OSError, TimeoutError, msgspec.DecodeError):
        pass  # the command has ended, or it was none
    finally:
        writer.close()


async def _read(reader: asyncio.StreamReader) -> bytes | None:
    """All of it, for who is answered before hears only that the line was cut. None where it is more than any command says."""
    said, size = bytearray(), 0
    while piece := await reader.read(65536):
        size += len(piece)
        if size <= LARGEST:
            said += piece
    return bytes(said) if size <= LARGEST else None


async def _answer_to(gateway: Gateway, own: dict[str, str], said: bytes | None) -> HttpAnswer:
    if said is None:
        return _as_answer(problem_response(Refused("payload_too_large")))
    asked = msgspec.msgpack.decode(said, type=Asked)
    if asked.version != __version__ or not asked.settings.items() <= own.items():
        return HttpAnswer(NOT_THIS_ONE, b"")
    try:
        return await answer_inside(gateway, asked)
    except StoreUnavailable:
        return _as_answer(problem_response(STORE_AWAY))
    except Exception:
        log.exception("a command failed", method=asked.method, path=asked.path)
        return _as_answer(problem_response(Refused("internal_error")))


async def answer_inside(gateway: Gateway, asked: HttpQuestion) -> HttpAnswer:
    """By the application in this process."""
    return _as_answer(
        await inside.ask(gateway, inside.COMMAND_LINE, asked.method, asked.path, asked.query, asked.body)
    )


def _as_answer(response: Response) -> HttpAnswer:
    return HttpAnswer(response.status_code, bytes(response.body))
