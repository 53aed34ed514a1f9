"""Is it alive, is it ready, and the numbers: for those who watch over it."""

from collections.abc import Awaitable, Callable

from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from postern.observe import deliveries_waiting, oldest_due_seconds, own_numbers, writer_waiting
from postern.usecases.runtime.gateway import Gateway

Numbers = Callable[[], Awaitable[str]]
"""Where there are several workers: how to ask for everybody's."""


def health_routes(gateway: Gateway, numbers: Numbers | None = None) -> list[Route]:
    async def healthz(_: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def readyz(_: Request) -> Response:
        """Ready means: calls are accepted and stored. A missing engine makes them wait, not fail, so it is
        told and does not count."""
        store = await gateway.store.reachable()
        engine = await gateway.engine.health() if gateway.engine is not None else None
        report = {
            "status": "ready" if store is None else "not ready",
            "store": {
                "ok": store is None,
                "detail": "reachable, schema up to date"
                if store is None
                else "not reachable or schema not up to date",
            },
            "engine": {"ok": engine.ok, "detail": engine.detail}
            if engine is not None
            else {"ok": False, "detail": "none in this process"},
        }
        return JSONResponse(report, 200 if store is None else 503)

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
