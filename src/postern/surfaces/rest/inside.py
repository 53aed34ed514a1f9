"""The API, asked by the process that it is in: how commands work on the machine of the gateway. Nothing goes over the
network, and whoever asks needs no key."""

import asyncio
import re
from urllib.parse import unquote, urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message

from postern.core.access.accounts import Actor
from postern.core.problems import Refused
from postern.surfaces.rest.framework.operation import JSON, PREFIX, Operation, handler
from postern.surfaces.rest.framework.problems import problem_response
from postern.surfaces.rest.table import operations
from postern.usecases.runtime.gateway import Gateway

# Whoever may open the database file may do everything anyway.
COMMAND_LINE = Actor("command line", "admin")


async def ask(
    gateway: Gateway, actor: Actor, method: str, path: str, query: dict[str, str], body: bytes | None
) -> Response:
    """The same answer as over HTTP; ``path`` is what follows the prefix. A store that is away is raised."""
    operation, parts = found(method, path)
    scope = {
        "type": "http",
        "method": method,
        "path": PREFIX + path,
        "query_string": urlencode(query).encode(),
        "path_params": parts,
        "headers": [(b"content-type", JSON.encode())],
    }

    unread = [body or b""]

    async def receive() -> Message:
        if not unread:
            await asyncio.Event().wait()  # nobody leaves
        return {"type": "http.request", "body": unread.pop()}

    async def who(_: Gateway, __: Request) -> Actor:
        return actor

    try:
        return await handler(gateway, operation, who)(Request(scope, receive))
    except Refused as refused:
        return problem_response(refused)


def found(method: str, path: str) -> tuple[Operation, dict[str, str]]:
    for one in operations():
        match = re.fullmatch(re.sub(r"{(\w+)}", r"(?P<\1>[^/]+)", one.path), PREFIX + path)
        if match and one.method == method:
            return one, {name: unquote(part) for name, part in match.groupdict().items()}
    raise LookupError(f"there is no operation {method} {path}")
