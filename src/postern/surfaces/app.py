"""The application: the pages and APIs. Calls at webhooks never get here (``exchange.py``)."""

from collections.abc import Callable
from typing import Any

from postern.surfaces.health import Numbers
from postern.surfaces.ingress import Ingress
from postern.surfaces.mcp.door import PATH as MCP
from postern.surfaces.mcp.door import Door
from postern.surfaces.rest.app import make_rest


def make_app(ingress: Ingress, numbers: Numbers | None = None) -> Callable[..., Any]:
    mcp = Door(ingress.gateway)
    pages = make_rest(ingress.gateway, numbers)

    async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            client = scope["client"]
            scope["address"] = ingress.address_of(client[0] if client else None, scope["headers"])
        if scope.get("path") in (MCP, MCP + "/"):
            await mcp(scope, receive, send)
        else:
            await pages(scope, receive, send)

    return app
