"""The management API, put together."""

from collections.abc import Sequence
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from postern.core.history.invocation import StoreUnavailable
from postern.core.problems import FieldError, Refused
from postern.surfaces.rest.access import key_rows, session_rows, user_rows
from postern.surfaces.rest.document import asset, docs, document_route
from postern.surfaces.rest.engine import engine_rows
from postern.surfaces.rest.history import history_rows
from postern.surfaces.rest.live import live_rows
from postern.surfaces.rest.problems import (
    on_defect,
    on_http_exception,
    on_refused,
    on_store_trouble,
    problem_response,
)
from postern.surfaces.rest.replays import replay_rows
from postern.surfaces.rest.signatures import signature_rows
from postern.surfaces.rest.table import PREFIX, Table
from postern.surfaces.rest.webhooks import duty_rows, webhook_rows
from postern.usecases.runtime.gateway import Gateway

TABLES = (
    webhook_rows,
    duty_rows,
    signature_rows,
    history_rows,
    replay_rows,
    live_rows,
    engine_rows,
    key_rows,
    user_rows,
    session_rows,
)


def make_api(gateway: Gateway, beside: Sequence[BaseRoute] = ()) -> FastAPI:
    """``beside``: routes that are no part of the API, and whose refusals are told as its are."""
    app = FastAPI(
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        exception_handlers={
            Refused: on_refused,
            StoreUnavailable: on_store_trouble,
            RequestValidationError: on_invalid_parameters,
            HTTPException: on_http_exception,
            Exception: on_defect,
        },
        routes=[*beside, Route("/docs", docs), Route("/docs/{name}", asset)],
    )
    app.state.gateway = gateway
    app.router.routes.append(Route(f"{PREFIX}/openapi.json", document_route(app)))
    table = Table(app)
    for rows in TABLES:
        rows(table, gateway)
    return app


async def on_invalid_parameters(_: Request, error: Exception) -> Response:
    """Bodies are checked before (``table.check_body``): what is left are the parameters of path, query and
    headers."""
    assert isinstance(error, RequestValidationError)
    errors = [FieldError(str(one["loc"][-1]), _in_words(one)) for one in error.errors()]
    return problem_response(Refused("invalid_request", errors=errors))


def _in_words(error: dict[str, Any]) -> str:
    message = str(error["msg"])
    return (
        "is not a cursor of this list"
        if error["type"] == "string_pattern_mismatch"
        else message[:1].lower() + message[1:]
    )
