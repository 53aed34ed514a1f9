"""The application: the pages and the APIs. Calls to webhooks do not get here (``http/call_exchange.py``)."""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any
from uuid import uuid4

from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from postern.core.address import ClientAddresses
from postern.core.history.invocation import StoreUnavailable
from postern.core.problems import Refused
from postern.observe.changes import may_have_changed, store_away
from postern.observe.logs import log
from postern.observe.metrics import own_numbers
from postern.surfaces.console.routes import console_routes
from postern.surfaces.console.visit import trouble_page
from postern.surfaces.mcp.endpoint import PATH as MCP
from postern.surfaces.mcp.endpoint import McpEndpoint
from postern.surfaces.rest.app import make_api
from postern.surfaces.rest.framework.problems import problem_page, problem_response
from postern.usecases.deliveries.dispatch import measure
from postern.usecases.operations.readiness import offer_writer_waiting, readiness
from postern.usecases.runtime.gateway import Gateway

MetricsText = Callable[[], Awaitable[str]]
"""Asks all workers for their metrics."""


def health_routes(gateway: Gateway, numbers: MetricsText | None = None) -> list[Route]:
    async def healthz(_: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def readyz() -> Response:
        health = await readiness(gateway)
        report = {"status": "ready" if health.ready else "not ready"} | {
            name: {"ok": part.ok, "detail": part.detail} for name, part in health.parts().items()
        }
        return JSONResponse(report, 200 if health.ready else 503)

    offer_writer_waiting(gateway)

    async def metrics() -> Response:
        await measure(gateway)
        return Response(
            await numbers() if numbers is not None else own_numbers(), media_type=CONTENT_TYPE_LATEST
        )

    return [
        Route("/healthz", healthz),
        Route("/readyz", _shared(readyz)),
        Route("/metrics", _shared(metrics)),
    ]


def _shared(look: Callable[[], Coroutine[Any, Any, Response]]) -> Callable[[Request], Awaitable[Response]]:
    """Answers all who ask while a look is under way with that look. No sign-in is needed to ask, and each look reads
    the database: a look for each would let strangers keep the process busy."""
    under_way: asyncio.Task[Response] | None = None

    async def answer(_: Request) -> Response:
        nonlocal under_way
        if under_way is None or under_way.done():
            under_way = asyncio.create_task(look())
        return await asyncio.shield(under_way)

    return answer


_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,100}")

ALWAYS = {
    b"x-content-type-options": b"nosniff",
    b"cache-control": b"no-store",
    b"referrer-policy": b"no-referrer",
    b"content-security-policy": b"default-src 'none'; frame-ancestors 'none'",
}


class Envelope:
    """Adds the headers of every answer, and answers HEAD wherever there is GET."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = time.perf_counter()
        head = scope["method"] == "HEAD"
        given = next((value for name, value in scope["headers"] if name == b"x-request-id"), b"")
        request_id = given if _REQUEST_ID.fullmatch(given) else uuid4().hex.encode()

        async def enveloped(message: Message) -> None:
            if message["type"] == "http.response.start":
                there = {name.lower() for name, _ in message["headers"]}
                added = [(name, value) for name, value in ALWAYS.items() if name not in there]
                timing = f"app;dur={(time.perf_counter() - began) * 1000:.1f}".encode()
                message["headers"] = [
                    *message["headers"],
                    *added,
                    (b"x-request-id", request_id),
                    (b"server-timing", timing),
                ]
            elif head and message["type"] == "http.response.body":
                message = {**message, "body": b""}
            await send(message)

        if head:
            scope = {**scope, "method": "GET", "head": True}
        await self._app(scope, receive, enveloped)


def make_app(gateway: Gateway, addresses: ClientAddresses, numbers: MetricsText | None = None) -> ASGIApp:
    mcp = McpEndpoint(gateway)
    routes = [
        *health_routes(gateway, numbers),
        Route("/problems/{code}", problem_page),
        *console_routes(gateway),
    ]
    api = make_api(gateway, routes)
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


def watched(app: ASGIApp) -> ASGIApp:
    """Logs a defect, once, and answers it as a problem unless the answer has begun. uvicorn's own log is off,
    and Starlette raises again what its handlers have answered."""

    async def watching(scope: Scope, receive: Receive, send: Send) -> None:
        begun = False
        may_have_changed.set(False)

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
            problem = store_away()
        except Exception:
            log.exception("a request failed", method=scope.get("method"), path=scope.get("path"))
            problem = Refused("internal_error")
        if scope["type"] == "http" and not begun:
            await problem_response(problem)(scope, receive, send)

    return watching
