"""Is it alive, is it ready, and the numbers: for those who watch over it."""

from collections.abc import Awaitable, Callable

from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from postern.observe import deliveries_waiting, oldest_due_seconds, own_numbers, writer_waiting
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

    # Asked when the numbers are: a worker's are read by its siblings too, and they do not come through its
    # own route.
    writer_waiting.set_function(lambda: gateway.store.waiting)

    async def metrics(_: Request) -> Response:
        count, oldest = await gateway.store.deliveries.backlog(gateway.clock())
        deliveries_waiting.set(count)
        oldest_due_seconds.set(oldest)
        return Response(
            await numbers() if numbers is not None else own_numbers(), media_type=CONTENT_TYPE_LATEST
        )

    return [Route("/healthz", healthz), Route("/readyz", readyz), Route("/metrics", metrics)]
