"""Is it alive, is it ready, and the numbers: for those who watch over it."""

from collections.abc import Awaitable, Callable

from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from postern.observe.metrics import own_numbers
from postern.usecases.operations.numbers import measure, offer_writer_waiting
from postern.usecases.operations.readiness import readiness
from postern.usecases.runtime.gateway import Gateway

Numbers = Callable[[], Awaitable[str]]
"""Where there are several workers: how to ask for everybody's."""


def health_routes(gateway: Gateway, numbers: Numbers | None = None) -> list[Route]:
    async def healthz(_: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def readyz(_: Request) -> Response:
        found = await readiness(gateway)
        parts = {"store": found.store, "webhooks": found.webhooks, "engine": found.engine}
        report = {"status": "ready" if found.ready else "not ready"} | {
            name: {"ok": part.ok, "detail": part.detail} for name, part in parts.items()
        }
        return JSONResponse(report, 200 if found.ready else 503)

    offer_writer_waiting(gateway)

    async def metrics(_: Request) -> Response:
        await measure(gateway)
        return Response(
            await numbers() if numbers is not None else own_numbers(), media_type=CONTENT_TYPE_LATEST
        )

    return [Route("/healthz", healthz), Route("/readyz", readyz), Route("/metrics", metrics)]
