"""Which engine the settings ask for, and what it is given of the gateway."""

import sys
from functools import partial

from postern.engines.embedded.engine import EmbeddedEngine
from postern.engines.handover import Target, read_ranges, read_targets
from postern.engines.http import HttpEngine, read_headers
from postern.engines.restate import DEFAULT_TARGET as RESTATE_TARGET
from postern.engines.restate import RestateEngine
from postern.engines.shopify_flow import ShopifyFlowEngine
from postern.observe.logs import log_style
from postern.observe.watching import Watch
from postern.outbound.guard import FetchFailed
from postern.settings import SettingError, Settings
from postern.stores.sql.database import ensure_sqlite
from postern.usecases.calls.respond import answer_of_workflow
from postern.usecases.operations.example import example_environment
from postern.usecases.ports import Engine
from postern.usecases.runtime.gateway import Gateway


def make_engine(settings: Settings, watch: Watch | None = None) -> Engine | None:
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
                from postern.engines.temporal import TemporalEngine

                return TemporalEngine(
                    settings.temporal_address,
                    namespace=settings.temporal_namespace,
                    targets=read_targets(settings.temporal_targets, Target()),
                    api_key=settings.temporal_api_key or None,
                    tls={"auto": None, "on": True, "off": False}[settings.temporal_tls],
                )
            case "restate":
                return RestateEngine(
                    settings.restate_url,
                    targets=read_targets(settings.restate_targets, RESTATE_TARGET),
                    api_key=settings.restate_api_key or None,
                )
            case "dbos":
                from postern.engines.dbos import DbosEngine

                return DbosEngine(
                    settings.dbos_database_url, targets=read_targets(settings.dbos_targets, Target())
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
                ensure_sqlite()  # its journal is SQLite's, whatever the database
                return EmbeddedEngine(
                    settings.data_dir,
                    settings.workflows,
                    at_once=settings.workflows_at_once,
                    log=log_style(settings.log, sys.stderr),
                    watch=watch,
                )
            case "none":
                return None
    except (FetchFailed, ValueError) as error:
        words = error.detail if isinstance(error, FetchFailed) else str(error)
        raise SettingError(
            f"POSTERN_ENGINE={settings.engine} cannot work with its settings: {words}"
        ) from error


async def open_engine(engine: Engine, gateway: Gateway, settings: Settings) -> None:
    if isinstance(engine, EmbeddedEngine):
        runtime = gateway.runtime
        engine.report_to(partial(answer_of_workflow, gateway), runtime.endings.ended, runtime.engine.back.set)
        if settings.example == "on":
            engine.environment |= await example_environment(gateway)
    else:
        gateway.runtime.engine.back.set()  # it is assumed to be up; a start finds out
    await engine.open()
