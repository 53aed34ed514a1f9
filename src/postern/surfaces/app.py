"""The application: calls go straight to the ingress, everything else to the pages and APIs."""

from collections.abc import Callable
from typing import Any

from postern.core.address import Allowlist
from postern.surfaces.health import Numbers
from postern.surfaces.ingress import PREFIX, Ingress
from postern.surfaces.mcp.door import PATH as MCP
from postern.surfaces.mcp.door import Door
from postern.surfaces.rest.app import make_rest
from postern.usecases.gateway import Gateway


def make_app(gateway: Gateway, trusted_proxies: list[str], client_header: str, numbers: Numbers | None = None) -> Callable[..., Any]:
    ingress = Ingress(gateway, Allowlist.parse(trusted_proxies), client_header)
    mcp = Door(gateway)
    pages = make_rest(gateway, numbers)

    async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["raw_path"].startswith(PREFIX):
            await ingress(scope, receive, send)
        else:
            if scope["type"] == "http":
                scope["address"] = ingress.address_of(scope)
            if scope.get("path") in (MCP, MCP + "/"):
                await mcp(scope, receive, send)
            else:
                await pages(scope, receive, send)

    return app
