"""The application: the pages and APIs. Calls at webhooks never get here (``http/call_exchange.py``)."""

from collections.abc import Callable
from typing import Any

from starlette.requests import ClientDisconnect
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from postern.core.address import ClientAddresses
from postern.core.history.invocation import StoreUnavailable
from postern.core.problems import Refused
from postern.observe.logs import Log
from postern.surfaces.console import console_routes, trouble_page
from postern.surfaces.health import Numbers, health_routes
from postern.surfaces.mcp.endpoint import PATH as MCP
from postern.surfaces.mcp.endpoint import McpEndpoint
from postern.surfaces.rest.app import make_api
from postern.surfaces.rest.framework.envelope import Envelope
from postern.surfaces.rest.framework.problems import STORE_AWAY, problem_page, problem_response
from postern.usecases.runtime.gateway import Gateway

log = Log()

App = Callable[..., Any]


def make_app(gateway: Gateway, addresses: ClientAddresses, numbers: Numbers | None = None) -> App:
    mcp = McpEndpoint(gateway)
    beside = [
        *health_routes(gateway, numbers),
        Route("/problems/{code}", problem_page),
        *console_routes(gateway),
    ]
    api = make_api(gateway, beside)
    api.state.trouble_page = trouble_page
    pages = Envelope(api)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            client = scope["client"]
            scope["address"] = addresses.client(client[0] if client else None, scope["headers"])
        if scope.get("path") in (MCP, MCP + "/"):
            await mcp(scope, receive, send)
        else:
            await pages(scope, receive, send)

    return watched(app)


def watched(app: App) -> App:
    """A defect is logged here, once, however far the answer had come, and answered as a problem where none had
    begun: uvicorn's own log is off, and Starlette raises again what its handlers have answered."""

    async def watching(scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def noticing(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await app(scope, receive, noticing)
            return
        except ClientDisconnect:
            return
        except StoreUnavailable:
            problem = STORE_AWAY
        except Exception:
            log.exception("a request failed", method=scope.get("method"), path=scope.get("path"))
            problem = Refused("internal_error")
        if scope["type"] == "http" and not begun:
            await problem_response(problem)(scope, receive, send)

    return watching
