"""The management API: a table from paths to use cases."""

from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from postern.core.answer import LARGEST_RESPONSE
from postern.core.invocation import StoreUnavailable
from postern.core.problems import PROBLEMS, Refused
from postern.surfaces.console import console_routes
from postern.surfaces.health import health_routes
from postern.usecases.gateway import Gateway
from postern.usecases.respond import respond


def problem_response(refused: Refused) -> Response:
    problem = PROBLEMS[refused.code]
    document: dict[str, Any] = {
        "type": f"/problems/{problem.code}",
        "title": problem.title,
        "status": problem.status,
        "detail": refused.detail or problem.help,
        "code": problem.code,
    }
    if refused.errors:
        document["errors"] = [{"field": error.field, "message": error.message} for error in refused.errors]
    headers = {"retry-after": str(problem.retry_after)} if problem.retry_after else {}
    if problem.status == 401:
        headers["www-authenticate"] = 'Bearer realm="postern"'
    return JSONResponse(document, problem.status, headers, media_type="application/problem+json")


def make_rest(gateway: Gateway) -> Starlette:
    async def response_door(request: Request) -> Response:
        """Where a workflow answers its waiting caller: its one-time token, no API key."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        raw = b""
        async for chunk in request.stream():
            raw += chunk
            if len(raw) > LARGEST_RESPONSE * 2:
                raise Refused("payload_too_large", "a response may have 1 MiB")
        try:
            said = msgspec.json.decode(raw)
        except (msgspec.DecodeError, ValueError, RecursionError):
            raise Refused("malformed_json", "the response is not valid JSON") from None
        if not isinstance(said, dict):
            raise Refused("payload_not_an_object", 'the response is an object like {"status": 200, "headers": {}, "body": {}}')
        token = token if scheme.lower() == "bearer" else ""
        await respond(gateway, request.path_params["invocation_id"], token, said.get("status"), said.get("headers"), said.get("body"))
        return JSONResponse({"status": "answered"})

    async def on_refused(_: Request, error: Exception) -> Response:
        assert isinstance(error, Refused)
        return problem_response(error)

    async def on_store_trouble(_: Request, error: Exception) -> Response:
        return problem_response(Refused("temporarily_unavailable", "The store cannot be reached now."))

    async def not_found(_: Request, error: Exception) -> Response:
        return problem_response(Refused("not_found", "There is no such page."))

    return Starlette(
        routes=[
            *health_routes(gateway),
            Route("/api/v1/invocations/{invocation_id}/response", response_door, methods=["POST"]),
            *console_routes(gateway),
        ],
        exception_handlers={Refused: on_refused, StoreUnavailable: on_store_trouble, 404: not_found},
    )
