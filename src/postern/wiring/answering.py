"""The API on a socket in the data folder, for commands that are typed on this machine (``surfaces/cli/gateway/beside.py``)."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import msgspec
import uvicorn
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from postern import __version__
from postern.settings import Settings
from postern.surfaces.app import watched
from postern.surfaces.cli.gateway.beside import HEADER, NAME, NOT_THIS_ONE, AskingCommand, digests
from postern.surfaces.cli.gateway.source import HttpAnswer, HttpQuestion
from postern.surfaces.rest.app import make_api
from postern.surfaces.session import ACTOR, COMMAND_LINE
from postern.usecases.runtime.gateway import Gateway

FINISH_WITHIN = 10.0


@asynccontextmanager
async def answering(gateway: Gateway, settings: Settings) -> AsyncIterator[None]:
    """Without a socket, because the folder's name is too long or its file system has none, commands open the
    database themselves."""
    place = settings.data_dir / NAME
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        try:
            place.unlink(missing_ok=True)  # of a process that was killed; whoever serves holds the folder
            _bind(listener, str(place))
        except OSError:
            yield
            return
        app = _for_matching_commands(watched(make_api(gateway)), digests(settings))
        config = uvicorn.Config(app, log_config=None, log_level="critical", access_log=False)
        config.load()
        state = ServerState()
        loop = asyncio.get_running_loop()
        server = await loop.create_unix_server(lambda: HttpToolsProtocol(config, state, {}), sock=listener)
        try:
            yield
        finally:
            with suppress(OSError):
                place.unlink(missing_ok=True)
            server.close()
            for connection in list(state.connections):
                connection.shutdown()
            if state.tasks:
                _, unfinished = await asyncio.wait(state.tasks, timeout=FINISH_WITHIN)
                for task in unfinished:
                    task.cancel()


def _bind(listener: socket.socket, place: str) -> None:
    """Closes the socket to other users from the first moment: who can connect may do everything."""
    before = os.umask(0o177)
    try:
        listener.bind(place)
    finally:
        os.umask(before)


def _for_matching_commands(app: ASGIApp, own: dict[str, str]) -> ASGIApp:
    """Answers 421 to a command of another version or with other settings. Other programs send no such header."""

    async def checked(scope: Scope, receive: Receive, send: Send) -> None:
        said = dict(scope["headers"]).get(HEADER.lower().encode())
        if said is not None and not _matches(said, own):
            await Response(status_code=NOT_THIS_ONE)(scope, receive, send)
            return
        await app({**scope, ACTOR: COMMAND_LINE}, receive, send)

    return checked


def _matches(said: bytes, own: dict[str, str]) -> bool:
    try:
        command = msgspec.json.decode(said, type=AskingCommand)
    except msgspec.DecodeError:
        return False
    return command.version == __version__ and command.settings.items() <= own.items()


async def answer_here(app: ASGIApp, question: HttpQuestion) -> HttpAnswer:
    """Asks an application in this process."""
    path, _, query = question.target.partition("?")
    scope: Scope = {
        "type": "http",
        "method": question.method,
        "path": path,
        "query_string": query.encode(),
        "headers": [(name.lower().encode(), value.encode()) for name, value in question.headers.items()],
        ACTOR: COMMAND_LINE,
    }
    unread = [question.body or b""]
    heard: list[Message] = []

    async def receive() -> Message:
        if not unread:
            await asyncio.Event().wait()  # nobody leaves
        return {"type": "http.request", "body": unread.pop()}

    async def send(message: Message) -> None:
        heard.append(message)

    await app(scope, receive, send)
    return HttpAnswer(heard[0]["status"], b"".join(part.get("body", b"") for part in heard))
