"""Assembles the management API."""

from collections.abc import Awaitable, Callable, Sequence

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import Scope

from postern.core.history.invocation import StoreUnavailable
from postern.core.problems import Refused
from postern.surfaces.rest.framework.document import asset, docs, document_route
from postern.surfaces.rest.framework.operation import PREFIX, handler
from postern.surfaces.rest.framework.problems import (
    on_defect,
    on_http_exception,
    on_refused,
    on_store_trouble,
)
from postern.surfaces.rest.table import operations
from postern.usecases.runtime.gateway import Gateway

Handler = Callable[[Request], Awaitable[Response]]


class WholePath(Route):
    """All methods of a path. The first path that matches answers, or refuses the method. Otherwise `GET
    /webhooks/many` would show a webhook with the id "many", and a refusal would name the methods of another
    path."""

    def __init__(self, path: str, by_method: dict[str, Handler]) -> None:
        async def handle(request: Request) -> Response:
            return await by_method["GET" if request.method == "HEAD" else request.method](request)

        super().__init__(path, handle, methods=list(by_method))

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        match, child = super().matches(scope)
        return (Match.NONE if match is Match.NONE else Match.FULL), child


def make_api(gateway: Gateway, other_routes: Sequence[BaseRoute] = ()) -> Starlette:
    """``other_routes``: routes outside the API, whose refusals have the same form."""
    by_path: dict[str, dict[str, Handler]] = {}
    for operation in operations():
        by_path.setdefault(operation.path, {})[operation.method] = handler(gateway, operation)
    app = Starlette(
        exception_handlers={
            Refused: on_refused,
            StoreUnavailable: on_store_trouble,
            HTTPException: on_http_exception,
            Exception: on_defect,
        },
        routes=[
            *other_routes,
            Route("/docs", docs),
            Route("/docs/{name}", asset),
            Route(f"{PREFIX}/openapi.json", document_route(list(operations()))),
            *(WholePath(path, methods) for path, methods in by_path.items()),
        ],
    )
    app.router.redirect_slashes = False
    return app
