import asyncio
import threading

from starlette.requests import Request

from postern.surfaces.app import health_routes
from support.desk import Desk


async def test_the_metrics_say_how_much_waits_for_the_writer(desk: Desk) -> None:
    (metrics,) = (route.endpoint for route in health_routes(desk.gateway) if route.path == "/metrics")

    async def waiting() -> str:
        answer = await metrics(Request({"type": "http"}))
        (line,) = (
            line
            for line in bytes(answer.body).decode().splitlines()
            if line.startswith("postern_writer_waiting ")
        )
        return line.partition(" ")[2]

    assert await waiting() == "0.0"
    go = threading.Event()
    writes = [asyncio.create_task(desk.store.writer.write(lambda connection: go.wait(20))) for _ in range(3)]
    await asyncio.sleep(0)
    assert await waiting() == "3.0"
    go.set()
    await asyncio.gather(*writes)
    assert await waiting() == "0.0"
