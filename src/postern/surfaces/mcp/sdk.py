"""Serves the tools with the official SDK. The SDK is slow to import, so this module is imported late."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from functools import cache
from threading import Thread
from typing import Any, cast
from urllib.parse import urlsplit

import mcp_types as types
import pydantic_core
from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import DEFAULT_MAX_REQUEST_BODY_SIZE, TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from starlette.responses import JSONResponse
from starlette.types import Message, Receive

from postern import __version__
from postern.core.access.accounts import Actor
from postern.core.documents import Document
from postern.core.history.invocation import StoreUnavailable
from postern.core.problems import Refused
from postern.observe.changes import may_have_changed, store_away
from postern.observe.logs import log
from postern.surfaces.mcp.shown import Shown
from postern.surfaces.mcp.table import INSTRUCTIONS, TOOLS
from postern.surfaces.mcp.tool import Tool
from postern.surfaces.rest.framework.problems import problem_of
from postern.usecases.runtime.gateway import Gateway

SdkState = dict[str, Any]
"""The SDK's state of a server. It stays empty."""
Context = ServerRequestContext[SdkState, Any]
ActorOf = Callable[[Context], Actor]


def make_server(gateway: Gateway, actor_of: ActorOf) -> Server[SdkState]:
    async def list_tools(context: Context, _: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        actor = actor_of(context)
        return types.ListToolsResult(
            tools=[_described(tool) for tool in TOOLS.values() if actor.may(tool.level)]
        )

    async def call_tool(context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        tool = TOOLS.get(params.name)
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, "There is no tool of this name; tools/list names them.")
        may_have_changed.set(False)
        try:
            return _result(await tool.run(gateway, actor_of(context), params.arguments or {}))
        except Refused as refused:
            return _refusal(refused)
        except StoreUnavailable:
            return _refusal(store_away())
        except Exception:
            log.error("a tool failed", tool=tool.name, exc_info=True)
            return _refusal(Refused("internal_error"))

    def input_schema(name: str) -> Document | None:
        """Otherwise the SDK lists all tools at each call of one."""
        tool = TOOLS.get(name)
        return None if tool is None else _described(tool).input_schema

    return Server(
        "postern",
        version=__version__,
        title="Postern",
        instructions=INSTRUCTIONS,
        get_tool_input_schema=input_schema,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


async def serve_http(
    server: Server[SdkState], security: TransportSecuritySettings, scope: Any, receive: Any, send: Any
) -> None:
    """Serves one request. Nothing is kept between two of them: the session manager lives as long as the
    request, so nothing has to be started or ended with the program."""
    received = await _read(receive)
    if received[-1]["type"] == "http.disconnect":
        return  # cut off: the SDK would write a trace into the log
    body = b"".join(message.get("body", b"") for message in received)
    wrong = None if len(body) > DEFAULT_MAX_REQUEST_BODY_SIZE else wrong_with_message(body)
    if wrong:
        document = _error(wrong).model_dump(by_alias=True, mode="json", exclude_none=True) | {"id": None}
        await JSONResponse(document, 400)(scope, receive, send)
        return
    manager = StreamableHTTPSessionManager(
        server, json_response=True, stateless=True, security_settings=security
    )
    async with manager.run():
        await manager.handle_request(scope, _again(received, receive), send)


async def _read(receive: Receive) -> list[Message]:
    """Returns the messages of the request's body, as far as the SDK takes one."""
    received: list[Message] = []
    size = 0
    while size <= DEFAULT_MAX_REQUEST_BODY_SIZE:
        received.append(message := await receive())
        size += len(message.get("body", b""))
        if not message.get("more_body"):
            break
    return received


def _again(received: list[Message], receive: Receive) -> Receive:
    left = iter(received)

    async def next_one() -> Message:
        return next(left, None) or await receive()

    return next_one


def wrong_with_message(text: bytes) -> types.ErrorData | None:
    """Says why this is no message of the protocol. The SDK's own errors quote its library, and some messages it
    does not answer at all."""
    try:
        text.decode()
        message = pydantic_core.from_json(text)  # as the SDK reads it: 1e999 is a number
    except UnicodeDecodeError:
        return types.ErrorData(code=types.INVALID_REQUEST, message="The message is not written in UTF-8.")
    except ValueError as error:
        return types.ErrorData(code=types.PARSE_ERROR, message=f"Parse error: {error}")
    said = _wrong(message)
    return types.ErrorData(code=types.INVALID_REQUEST, message=said) if said else None


def _wrong(message: Any) -> str:
    if not isinstance(message, dict):
        return "Send one JSON-RPC 2.0 message, an object."
    if message.get("jsonrpc") != "2.0":
        return 'A JSON-RPC 2.0 message says "jsonrpc": "2.0".'
    if "method" not in message and message.get("id", "") is None and isinstance(message.get("error"), dict):
        return ""  # that a message of ours could not be read, which must not be answered in the same way
    has_id = isinstance(message.get("id"), (str, int)) and not isinstance(message["id"], bool)
    if "id" in message and not has_id:
        return "The id of a request is a text or a whole number."
    if "method" not in message:
        is_response = has_id and ("result" in message or isinstance(message.get("error"), dict))
        return "" if is_response else "A request names its method."
    if not isinstance(message["method"], str):
        return "The method of a request is a text."
    return "" if isinstance(message.get("params", {}), dict) else "The params of a request are an object."


def _error(wrong: types.ErrorData) -> types.JSONRPCError:
    return types.JSONRPCError(jsonrpc="2.0", id=None, error=wrong)


def security_for(base_url: str) -> TransportSecuritySettings:
    """Accepts requests to the base URL or to this machine, and refuses pages of other origins."""
    base = urlsplit(base_url)
    here = ["127.0.0.1", "localhost", "[::1]"]
    hosts = [
        base.netloc,
        f"{base.hostname}:{base.port or (443 if base.scheme == 'https' else 80)}",
        *here,
        *(f"{host}:*" for host in here),
    ]
    origins = [f"{base.scheme}://{base.netloc}", *(f"http://{host}:*" for host in here)]
    return TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=origins)


async def serve_stdio(gateway: Gateway, actor: Actor) -> None:
    """Serves until the client closes standard input or reads no more."""
    server = make_server(gateway, lambda _: actor)
    following = asyncio.create_task(gateway.runtime.follow_changes())

    async def messages() -> AsyncIterator[bytes]:
        """Answers lines that are no message. The SDK's reader does not, and the client would wait."""
        async for line in _lines_of_standard_input():
            if wrong := wrong_with_message(line):
                await writing.send(SessionMessage(_error(wrong)))
            else:
                yield line

    try:
        async with stdio_server(stdin=cast(Any, messages())) as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())
    except* BrokenPipeError:
        pass
    finally:
        following.cancel()
        with suppress(asyncio.CancelledError):
            await following


async def _lines_of_standard_input() -> AsyncIterator[bytes]:
    """Reads lines in a thread that nobody waits for. The SDK waits for its own, so that neither Ctrl-C nor
    SIGTERM would end the command."""
    loop, pieces = asyncio.get_running_loop(), asyncio.Queue[bytes]()

    def read() -> None:
        while True:
            try:
                piece = os.read(0, 65536)
            except OSError:  # standard input was closed from the beginning
                piece = b""
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(pieces.put_nowait, piece)
            if not piece:
                return

    Thread(target=read, daemon=True).start()
    begun: list[bytes] = []
    while piece := await pieces.get():
        *whole, rest = piece.split(b"\n")
        for line in whole:
            if message := (b"".join(begun) + line).strip():
                yield message
            begun = []
        begun.append(rest)
    if last := b"".join(begun).strip():
        yield last


@cache
def _described(tool: Tool) -> types.Tool:
    """Describes a tool once, because making the schemas takes longer than most calls. Answers have no schema: a
    model reads them without one."""
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=" ".join(tool.description.split()),
        input_schema=tool.schema,
        annotations=types.ToolAnnotations(
            read_only_hint=tool.reads,
            destructive_hint=None if tool.reads else tool.destructive,
            open_world_hint=False,
        ),
    )


def _result(value: Any, is_error: bool = False) -> types.CallToolResult:
    """Answers in text alone. Structured content is only for tools that declare a schema of their answer."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=is_error)


def _refusal(refused: Refused) -> types.CallToolResult:
    """Answers a refusal with the codes and fields of the API, so that the model can act upon it."""
    return _result(Shown(without=("type", "status")).of(problem_of(refused)), is_error=True)
