"""The management API, put together."""

from collections.abc import Sequence

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Route

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
from postern.surfaces.rest.framework.routes import Handler, WholePath
from postern.surfaces.rest.table import operations
from postern.surfaces.session import actor_of
from postern.usecases.runtime.gateway import Gateway


def make_api(gateway: Gateway, beside: Sequence[BaseRoute] = ()) -> Starlette:
    """``beside``: routes that are no part of the API, and answer refusals in the same form."""
    app = Starlette(
        exception_handlers={
            Refused: on_refused,
            StoreUnavailable: on_store_trouble,
            HTTPException: on_http_exception,
            Exception: on_defect,
        },
        routes=[
            *beside,
            Route("/docs", docs),
            Route("/docs/{name}", asset),
            Route(f"{PREFIX}/openapi.json", document_route(list(operations()))),
            *_routes(gateway),
        ],
    )
    app.router.redirect_slashes = False
    return app


def _routes(gateway: Gateway) -> list[WholePath]:
    by_path: dict[str, dict[str, Handler]] = {}
    for one in operations():
        by_path.setdefault(one.path, {})[one.method] = handler(gateway, one, actor_of)
    return [WholePath(path, methods) for path, methods in by_path.items()]
