"""How many workflows each engine starts, and what a start costs: `python -m bench.starts [starts]`.

The gateway's own processor time is what it spends on asking; what the engine spends is told apart where it
runs as a process beside the gateway. The HTTP engine's other side answers a constant, so its rate is the
gateway's limit and no engine's.
"""

import asyncio
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
import uvloop
from sqlalchemy.engine import make_url

from bench.contestants import WORKFLOW, constant, cpu_of, descendants, parent_of
from bench.rooms import (
    durable_postgres,
    free_port,
    keep,
    restate_server,
    running_dbos,
    running_restate,
    table,
)
from postern.core.deliveries.delivery import EngineUnavailable, Trigger
from postern.engines.dbos import DbosEngine
from postern.engines.embedded.engine import EmbeddedEngine
from postern.engines.handover import Target
from postern.engines.http import HttpEngine
from postern.engines.restate import RestateEngine
from postern.engines.temporal import TemporalEngine
from postern.identity import new_id
from postern.usecases.deliveries.dispatch import BATCH
from postern.usecases.ports import Engine

ECHO = Target("Echo/second", "")
TRIES = 5
SECRET = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz"


def trigger() -> Trigger:
    invocation = new_id("inv")
    return Trigger(
        f"{invocation}.1", "wh_bench", invocation, {"fieldOne": "1001"}, b'{"orderNumber": "1001"}'
    )


async def measure(
    name: str, engine: Engine, starts: int, processes: Callable[[], Iterable[int]]
) -> list[str]:
    await engine.open()
    for _ in range(600):
        if (await engine.health()).ok:
            break
        await asyncio.sleep(0.1)
    await many(engine.start, BATCH)  # warm
    there = list(processes())
    began, spent, spent_there = time.perf_counter(), time.process_time(), sum(map(cpu_of, there))
    await many(engine.start, starts)
    lasted, spent = time.perf_counter() - began, time.process_time() - spent
    spent_there = sum(map(cpu_of, there)) - spent_there
    await engine.close()
    return [
        name,
        f"{starts / lasted:,.0f}",
        f"{spent / starts * 1e6:.0f}",
        f"{spent_there / starts * 1e6:.0f}" if there else "-",
    ]


async def many(start: Callable[[Trigger], Awaitable[object]], count: int) -> None:
    left = iter(range(count))

    async def one_after_the_other() -> None:
        for _ in left:
            asked = trigger()
            for _ in range(TRIES):
                with suppress(EngineUnavailable):  # a development server on a busy machine
                    await start(asked)
                    break

    await asyncio.gather(*(one_after_the_other() for _ in range(BATCH)))


def main(starts: int) -> None:
    rows = []

    def ask(name: str, engine: Engine, processes: Callable[[], Iterable[int]]) -> None:
        rows.append(uvloop.run(measure(name, engine, starts, processes)))

    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "nothing.py").write_text(WORKFLOW)
        embedded = EmbeddedEngine(Path(folder) / "data", Path(folder) / "nothing.py")
        ask("embedded", embedded, lambda: filter(None, [embedded.process_id]))
    with constant(Path(), "/") as answering:
        process = answering.process.pid
        ask("HTTP", HttpEngine(answering.url), lambda: [process])
        ask("HTTP, signed", HttpEngine(answering.url, secret=SECRET), lambda: [process])
    with restate() as server:
        if server is not None:
            ingress, process = server
            ask("Restate", RestateEngine(f"http://127.0.0.1:{ingress}", targets=[ECHO]), lambda: [process])
    with temporal() as development:
        if development is not None:
            address, process = development
            ask("Temporal's development server", TemporalEngine(address), lambda: [process])
    with dbos() as (url, processes):
        ask("DBOS, its Postgres", DbosEngine(url, targets=[Target("Echo")]), processes)
    text = table(["engine", "starts/s", "gateway CPU a start, µs", "engine CPU a start, µs"], rows)
    keep("Starts", f"{starts:,} starts, {BATCH} at once.", text)


@contextmanager
def restate() -> Iterator[tuple[int, int] | None]:
    with tempfile.TemporaryDirectory() as folder:
        binary = restate_server()
        if binary is None:
            yield None
            return
        with running_restate(binary, Path(folder)) as server:
            yield server.ingress, server.process


@contextmanager
def dbos() -> Iterator[tuple[str, Callable[[], list[int]]]]:
    """A database that an app has prepared, and the server's processes. The app is ended again: what it runs is not
    measured, nor is it with the others."""
    with durable_postgres() as server, tempfile.TemporaryDirectory() as folder:
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute("CREATE DATABASE starts")
            postmaster = parent_of(connection.info.backend_pid)
        url = make_url(server).set(drivername="postgresql", database="starts")
        text = url.render_as_string(hide_password=False)
        with running_dbos(text, Path(folder)):
            pass
        yield text, lambda: [postmaster, *descendants(postmaster)]


@contextmanager
def temporal() -> Iterator[tuple[str, int] | None]:
    binary = shutil.which("temporal", path=str(Path(sys.executable).parent)) or shutil.which("temporal")
    if binary is None:
        yield None
        return
    address = f"127.0.0.1:{free_port()}"
    how = f"server start-dev --headless --ip 127.0.0.1 --port {address.rpartition(':')[2]} --log-level error"
    command = [binary, *how.split()]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield address, server.pid
    finally:
        server.kill()
        server.wait()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3000)
