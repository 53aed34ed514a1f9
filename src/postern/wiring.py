"""The one place where the parts are put together."""

import asyncio
import fcntl
import hashlib
import hmac
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, cast

import uvloop
from sqlalchemy.engine import make_url

from postern import presets
from postern.core.address import Allowlist
from postern.core.delivery import Workflow
from postern.core.invocation import StoreUnavailable
from postern.engines.embedded.engine import EmbeddedEngine
from postern.engines.handover import read_ranges
from postern.engines.http import HttpEngine, read_headers
from postern.engines.shopify_flow import ShopifyFlowEngine
from postern.observe import CallLog, own_numbers, set_up_logs
from postern.outbound.fetch import Fetcher
from postern.outbound.guard import FetchFailed
from postern.settings import SettingError, Settings
from postern.stores import schema
from postern.stores.copying import CannotCopy, copy_all
from postern.stores.database import Database
from postern.stores.store import Store
from postern.stores.vault import VaultError, key_from_file
from postern.surfaces.app import make_app
from postern.surfaces.cli.main import make_cli
from postern.surfaces.cli.run import FAILED, UNAVAILABLE, USAGE, end, session
from postern.surfaces.server import listen
from postern.surfaces.server import serve as serve_http
from postern.surfaces.siblings import Siblings
from postern.surfaces.workers import Place, Workers, up
from postern.usecases import waking
from postern.usecases.access import ensure_admin
from postern.usecases.compiling import compile_webhook
from postern.usecases.directory import Directory
from postern.usecases.dispatch import LEASE, Dispatcher
from postern.usecases.example import example_curl
from postern.usecases.gateway import Gateway
from postern.usecases.ports import Engine, Fetched, FetchTrouble, PresetShelf
from postern.usecases.replays import Replayer
from postern.usecases.schedules import Scheduler
from postern.workflows.load import load


def secret_keys(settings: Settings) -> list[str]:
    if settings.secret_keys:
        return settings.secret_keys
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    return [key_from_file(settings.data_dir / "secret.key")]


def make_engine(settings: Settings) -> Engine | None:
    """Raises ``SettingError`` where the engine's own settings cannot work."""
    try:
        match settings.engine:
            case "http":
                return HttpEngine(
                    settings.http_url,
                    secret=settings.http_secret or None,
                    headers=read_headers(settings.http_headers),
                    inline=settings.http_inline == "on",
                    timeout=settings.http_timeout,
                    allowed_ranges=read_ranges(settings.http_allowed_ranges),
                )
            case "temporal":
                from postern.engines.temporal import TemporalEngine, read_targets

                return TemporalEngine(
                    settings.temporal_address,
                    namespace=settings.temporal_namespace,
                    targets=read_targets(settings.temporal_targets),
                    api_key=settings.temporal_api_key or None,
                    tls={"auto": None, "on": True, "off": False}[settings.temporal_tls],
                )
            case "shopify-flow":
                return ShopifyFlowEngine(
                    settings.shopify_shop,
                    settings.shopify_access_token,
                    handle=settings.shopify_trigger,
                    api_version=settings.shopify_api_version,
                    also_send=settings.shopify_also_send,
                    payload_limit=settings.shopify_payload_limit,
                )
            case "embedded":
                return EmbeddedEngine(settings.data_dir, settings.workflows)
            case _:
                return None
    except (FetchFailed, ValueError) as error:
        words = error.detail if isinstance(error, FetchFailed) else str(error)
        raise SettingError(f"POSTERN_ENGINE={settings.engine} cannot work with its settings: {words}") from error


@asynccontextmanager
async def opened(settings: Settings, serving_on: str | None = None) -> AsyncIterator[Gateway]:
    """A gateway ready for use cases. ``serving_on`` is the address it serves on: only then does it have an engine."""
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    keys = secret_keys(settings)
    store = Store(settings.database, keys)
    await store.open()
    runs_workflows = serving_on is not None and settings.engine == "embedded"
    if runs_workflows and not store.alone():
        await store.close()
        end(
            "Another Postern with the embedded engine serves this database. Give this one POSTERN_ENGINE=none, or all of them an engine they can share.",
            FAILED,
        )
    base_url = settings.base_url or serving_on or f"http://{settings.host}:{settings.port}"
    engine = make_engine(settings) if serving_on else None

    async def known_workflows() -> list[Workflow] | None:
        if settings.engine != "embedded":
            return None
        return [Workflow(one.name, one.webhook_ids, one.function.__doc__ or "", one.source) for one in load(settings.workflows).workflows]

    fetcher = Fetcher(allowed_ranges=Allowlist.parse(settings.outbound_allowed))

    async def fetch(url: str, *, headers: Mapping[str, str], timeout: float, max_bytes: int) -> Fetched:
        try:
            return await fetcher.fetch(url, headers=headers, timeout=timeout, max_bytes=max_bytes)
        except FetchFailed as failure:
            raise FetchTrouble(failure.detail, failure.status) from failure

    gateway = Gateway(
        store=store,
        directory=Directory(store.webhooks, compile_webhook),
        presets=cast(PresetShelf, presets),
        base_url=base_url,
        callback_url=serving_on if serving_on and settings.engine == "embedded" else base_url,
        response_key=hmac.new(keys[0].encode(), b"postern response tokens", hashlib.sha256).digest(),
        engine=engine,
        call_log=CallLog(style=settings.log),
        admin_key_digest=hashlib.sha256(settings.admin_key.encode()).digest() if settings.admin_key else None,
        known_workflows=known_workflows,
        fetch=fetch,
        workflows=settings.workflows if settings.engine == "embedded" else None,
    )
    try:
        await gateway.directory.refresh()
        if runs_workflows or (serving_on is not None and settings.is_sqlite):
            # This process is alone: what one that died had claimed need not wait for its lease to run out.
            await store.deliveries.release(gateway.clock(), LEASE)
        if engine is not None:
            await engine.open()
        yield gateway
    finally:
        if engine is not None:
            await engine.close()
        await fetcher.aclose()
        gateway.call_log.flush()
        await store.close()


@contextmanager
def alone(data_dir: Path) -> Iterator[None]:
    """One serving process per data folder: two would run the same unfinished workflows twice."""
    data_dir.mkdir(parents=True, exist_ok=True)
    with open(data_dir / "serving.lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            end(f"Another Postern already serves {data_dir.resolve()}. Stop it first, or give this one its own POSTERN_DATA_DIR.", FAILED)
        yield


async def _serve(settings: Settings, place: Place | None = None) -> None:
    """``place``: in a worker, what its parent has said. The parent holds the data folder and has greeted the user."""
    listener = socket.socket(fileno=place.listener) if place else _listener(settings)
    with listener, nullcontext() if place else alone(settings.data_dir):
        address = _address(settings, listener)
        async with opened(settings, address) as gateway:
            greeting = "" if place else await _greeting(gateway, settings, address)
            siblings = Siblings(Path(place.room), place.number, place.of, own_numbers) if place else None
            if siblings is not None:
                await siblings.open()

            def when_up() -> None:
                if place:
                    up(place)
                else:
                    print(greeting, flush=True)

            dispatcher = Dispatcher(gateway)
            following = [
                asyncio.create_task(gateway.directory.follow(), name="directory"),
                asyncio.create_task(waking.follow(gateway), name="wake"),
            ]
            dispatching = asyncio.create_task(dispatcher.run(), name="dispatch") if gateway.engine is not None else None
            scheduler = Scheduler(gateway)
            scheduling = asyncio.create_task(scheduler.run(), name="schedules")
            replayer = Replayer(gateway)
            replaying = asyncio.create_task(replayer.run(), name="replays")
            try:
                app = make_app(gateway, settings.trusted_proxies, settings.client_header, siblings.all if siblings else None)
                await serve_http(app, listener, settings.body_timeout, when_up, gateway.begin_to_end)
            finally:
                for task in following:
                    task.cancel()
                scheduler.stop()
                replayer.stop()
                await asyncio.gather(scheduling, replaying, return_exceptions=True)
                if dispatching is not None:
                    dispatcher.stop()
                    with suppress(TimeoutError, asyncio.CancelledError):
                        await asyncio.wait_for(dispatching, 10)


def _listener(settings: Settings, shared: bool = False) -> socket.socket:
    try:
        return listen(settings.host, settings.port, shared)
    except OSError as error:
        end(f"Cannot listen on {settings.host}:{settings.port}: {error.strerror}. Set POSTERN_PORT to another port.", USAGE)


def _address(settings: Settings, listener: socket.socket) -> str:
    """Where this machine reaches what listens there."""
    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(settings.host, f"[{settings.host}]" if ":" in settings.host else settings.host)
    return f"http://{host}:{listener.getsockname()[1]}"


async def _greeting(gateway: Gateway, settings: Settings, address: str) -> str:
    """What the first start makes, and what there is to tell about it."""
    curl = await example_curl(gateway) if settings.example == "on" else None
    password = await ensure_admin(gateway, settings.admin_password)
    lines = [f"Postern is serving on {address}", f"  Console   {address}/", f"  API       {address}/docs", f"  Health    {address}/readyz"]
    if settings.engine == "embedded":
        lines.append(f"  Workflows {settings.workflows}")
    if password:
        lines += ["", f"Sign in to the console as admin with the password {password}", "It is shown this once; change it there."]
    if curl:
        lines += ["", "Try it:", "", curl]
    return "\n".join([*lines, ""])


async def _serve_with(settings: Settings, count: int) -> int:
    """The parent of ``count`` workers."""
    if settings.is_sqlite or settings.engine == "embedded":
        what = "SQLite has one writer" if settings.is_sqlite else "The embedded engine belongs to one process"
        end(f"{what}: several workers need POSTERN_DATABASE_URL=postgresql://… and POSTERN_ENGINE=temporal, http or shopify-flow.", USAGE)
    _listener(settings).close()  # sockets that share an address would join another program's without a word
    first = _listener(settings, shared=True)
    settings.port = first.getsockname()[1]
    listeners = [first, *(_listener(settings, shared=True) for _ in range(count - 1))]
    with alone(settings.data_dir):
        async with opened(settings) as gateway:
            greeting = await _greeting(gateway, settings, _address(settings, first))
        return await Workers(listeners, lambda: print(greeting, flush=True)).run()


def serve(workers: int = 1, place: str | None = None) -> None:
    settings = _settings()
    set_up_logs(settings.log)
    with _told_in_words():
        if workers > 1:
            sys.exit(asyncio.run(_serve_with(settings, workers)))
        uvloop.run(_serve(settings, Place.read(place) if place else None))


def migrate() -> str:
    settings = _settings()
    with _told_in_words():
        database = Database(settings.database)
        schema.migrate(database)
        database.close()
    return f"The schema is {schema.newest()}."


def copy(whence: str, where: str, told: Callable[[str, int, int], None]) -> dict[str, int]:
    """Everything from one database to another; how many rows each table has."""
    file = make_url(whence).database if whence.startswith("sqlite") else None
    if file is not None and not Path(file).exists():
        end(f"There is no database {file}.", USAGE)
    source, target = Database(whence), Database(where)
    try:
        # A gateway on either of them would write what is not copied, or what nobody expects there.
        with alone(Path(source.url.database or "").parent) if source.is_sqlite else nullcontext(), _told_in_words():
            return {name: held.rows for name, held in copy_all(source, target, told).items()}
    except CannotCopy as refused:
        end(str(refused), FAILED)
    finally:
        source.close()
        target.close()


def _settings() -> Settings:
    try:
        return Settings()
    except SettingError as error:
        end(str(error), USAGE)


@contextmanager
def _told_in_words() -> Iterator[None]:
    """What stops the program at its start is said in a sentence, not in a traceback."""
    try:
        yield
    except (schema.SchemaMismatch, VaultError) as error:
        end(str(error), UNAVAILABLE)
    except StoreUnavailable as error:
        end(f"The database cannot be used: {error}", UNAVAILABLE)
    except SettingError as error:
        end(str(error), USAGE)
    except KeyboardInterrupt:
        sys.exit(130)


def cli() -> Any:
    @asynccontextmanager
    async def open_for_a_command() -> AsyncIterator[Gateway]:
        settings = _settings()
        set_up_logs("off" if settings.log == "off" else "text")
        with _told_in_words():
            async with opened(settings) as gateway:
                yield gateway

    session.open = open_for_a_command
    return make_cli(serve, lambda: _settings().listed(), migrate, copy)()
