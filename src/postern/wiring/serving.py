"""Serving: one process, or a parent and its workers, each with the loops that go with it."""

import asyncio
import errno
import gc
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, nullcontext, suppress
from functools import partial
from typing import Any, NamedTuple

from postern.core.address import ClientAddresses
from postern.core.history.invocation import StoreUnavailable
from postern.observe.logs import log
from postern.observe.metrics import own_numbers
from postern.settings import Settings
from postern.surfaces.app import make_app
from postern.surfaces.cli.develop.dev_lines import DevLines
from postern.surfaces.cli.run import FAILED, USAGE
from postern.surfaces.console.rehearsal import rehearse
from postern.surfaces.http.app_exchange import AppExchange, AppTurns
from postern.surfaces.http.call_exchange import CallExchange
from postern.surfaces.http.server import listen
from postern.surfaces.http.server import serve as serve_http
from postern.usecases.access.accounts import ensure_admin
from postern.usecases.alarms.judging import AlarmLoop
from postern.usecases.alarms.telling import TellLoop
from postern.usecases.calls.intake import Intake
from postern.usecases.deliveries.dispatch import Lanes
from postern.usecases.deliveries.replays import Replayer
from postern.usecases.deliveries.starting import START_TIMEOUT
from postern.usecases.history.endings import EndingsLoop
from postern.usecases.history.findable import FindableLoop
from postern.usecases.listeners.listeners import ListenersLoop
from postern.usecases.operations import readiness
from postern.usecases.operations.example import example_curl
from postern.usecases.operations.retention import RetentionLoop
from postern.usecases.runtime.gateway import Gateway
from postern.usecases.runtime.site import out_of_reach
from postern.usecases.schedules import Scheduler
from postern.wiring.answering import answering
from postern.wiring.gateway import alone, opened
from postern.wiring.greeting import Greeting
from postern.wiring.starting import CannotStart
from postern.wiring.workers.parent import Workers
from postern.wiring.workers.worker import Lifeline, WorkerMetrics, WorkerSlot

CHECK_ALONE_EVERY = 1.0


async def serve(settings: Settings, slot: WorkerSlot | None = None, lines: DevLines | None = None) -> None:
    """``slot``: in a worker, what its parent has given it. The parent holds the data folder and has greeted the
    user. ``lines``: in which a terminal shows the embedded engine's files and runs, and the calls."""
    listener = socket.socket(fileno=slot.listener) if slot else _listener(settings)
    with listener, nullcontext() if slot else alone(settings):
        address = _address(settings, listener)
        async with opened(settings, address, lines) as gateway:
            greeting: Greeting | None = None
            lifeline = Lifeline(slot) if slot else None
            worker_metrics = WorkerMetrics(slot, own_numbers) if slot else None
            if worker_metrics is not None:
                await worker_metrics.open()

            def when_up() -> None:
                if greeting:
                    greeting.show()
                # Objects made by the start stay for ever: collections need not look through it again. With
                # Python's own thresholds a busy gateway stops for 50 to 100 ms every second or so, and that
                # was the slowest hundredth of all answers.
                gc.collect()
                gc.freeze()
                gc.set_threshold(20_000, 20, 100)
                if lifeline:
                    lifeline.serving()

            async with _services(gateway, lines):
                addresses = ClientAddresses(settings.trusted_proxies, settings.client_header)
                app = make_app(gateway, addresses, worker_metrics.all if worker_metrics else None)
                if not slot:  # last of all: its password is shown once it serves, and a moment in between would be too long
                    greeting = await _greeting(gateway, settings, address)
                # Workers do not answer commands.
                async with nullcontext() if slot else answering(gateway, settings):
                    with greeting.whatever_comes() if greeting else nullcontext():
                        await serve_http(
                            partial(CallExchange, Intake(gateway, addresses)),
                            partial(AppExchange, app, AppTurns()),
                            listener,
                            settings.body_timeout,
                            settings.base_url.startswith("https://"),
                            when_up,
                            gateway.runtime.begin_to_end,
                        )


ServiceRun = Callable[[], Coroutine[Any, Any, None]]


class Service(NamedTuple):
    """Work that goes on while the gateway serves. Where it ends before by an error, the log says so then."""

    run: ServiceRun
    stop: Callable[[], None] | None = None
    """Asks it to end, which is waited for: a round of it writes more than once, and a half of it would stay. Without this it is
    cut off, wherever it is."""

    def begin(self) -> asyncio.Task[None]:
        task = asyncio.create_task(self.run())
        task.add_done_callback(_say_if_it_failed)
        return task


@asynccontextmanager
async def _services(gateway: Gateway, lines: DevLines | None) -> AsyncIterator[None]:
    watches: list[ServiceRun] = [
        gateway.runtime.follow_changes,
        partial(gateway.store.listen, gateway.runtime.hear),
        partial(readiness.watch, gateway),
        partial(_stay_alone, gateway),
        RetentionLoop(gateway).run,
        partial(rehearse, gateway),
        *([partial(lines.follow, gateway)] if lines else []),
    ]
    loops = (Scheduler, Replayer, FindableLoop, ListenersLoop, AlarmLoop, TellLoop)
    endings, lanes = EndingsLoop(gateway), Lanes(gateway)
    workers = [endings, *(loop(gateway) for loop in loops)]
    services = [*map(Service, watches), *(Service(worker.run, worker.stop) for worker in workers)]
    running = {service.begin(): service.stop for service in services}
    starting = Service(lanes.run).begin()
    try:
        yield
    finally:
        for task, stop in running.items():
            (stop or task.cancel)()
        await asyncio.gather(*running, return_exceptions=True)
        lanes.stop()
        # A start that is cut off here may have reached the engine, and would be asked for again by the next process.
        finishing = asyncio.create_task(gateway.runtime.finish(START_TIMEOUT))
        await asyncio.wait([finishing, starting], timeout=START_TIMEOUT)
        with suppress(StoreUnavailable):
            await endings.write()


def _say_if_it_failed(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("a background task has ended", task=str(task.get_coro()), exc_info=error)


async def _stay_alone(gateway: Gateway) -> None:
    """Ends this process, in order, once another one is the one with the embedded engine."""
    while True:
        if not await gateway.store.still_alone():
            break
        await asyncio.sleep(CHECK_ALONE_EVERY)
    log.error("another Postern with the embedded engine serves this database now: this one ends")
    os.kill(os.getpid(), signal.SIGTERM)


def _listener(settings: Settings, shared: bool = False) -> socket.socket:
    try:
        return listen(settings.host, settings.port, shared)
    except OSError as error:
        taken = error.errno in (errno.EADDRINUSE, errno.EACCES)
        instead = "POSTERN_PORT to another port" if taken else "POSTERN_HOST to an address of this machine"
        # An address that is taken, or not there yet, may be had a moment later: a supervisor is to try again.
        again = error.errno in (errno.EADDRINUSE, errno.EADDRNOTAVAIL)
        raise CannotStart(
            f"Cannot listen on {settings.host}:{settings.port}: {error.strerror}. Set {instead}.",
            FAILED if again else USAGE,
        ) from error


def _address(settings: Settings, listener: socket.socket) -> str:
    """Returns the address by which this machine reaches the listener."""
    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(
        settings.host, f"[{settings.host}]" if ":" in settings.host else settings.host
    )
    return f"http://{host}:{listener.getsockname()[1]}"


async def _greeting(gateway: Gateway, settings: Settings, address: str) -> Greeting:
    """Makes what the first start makes, and returns what there is to tell."""
    curl = await example_curl(gateway) if settings.example == "on" else None
    password = await ensure_admin(gateway, settings.admin_password)
    return Greeting(
        address,
        str(settings.workflows) if settings.engine == "embedded" else "",
        password or "",
        curl or "",
        out_of_reach(gateway.site.base_url),
        as_event=settings.log == "json",
    )


async def serve_with(settings: Settings, count: int) -> int:
    """The parent of ``count`` workers."""
    if settings.is_sqlite or settings.engine == "embedded":
        what = "SQLite has one writer" if settings.is_sqlite else "The embedded engine belongs to one process"
        raise CannotStart(
            f"{what}: several workers need POSTERN_DATABASE_URL=postgresql://… and POSTERN_ENGINE=temporal, restate, dbos, http or shopify-flow.",
            USAGE,
        )
    _listener(settings).close()  # sockets that share an address would join another program's without a word
    first = _listener(settings, shared=True)
    settings.port = first.getsockname()[1]
    unused = iter([first])

    def one_more() -> socket.socket:
        return next(unused, None) or listen(settings.host, settings.port, shared=True)

    with alone(settings):
        async with opened(settings) as gateway:
            greeting = await _greeting(gateway, settings, _address(settings, first))
        with greeting.whatever_comes():
            return await Workers(count, one_more, greeting.show, settings.data_dir).run()
