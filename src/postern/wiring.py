"""The one place where the parts are put together."""

import hashlib
import hmac
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from postern import presets
from postern.engines.embedded import EmbeddedEngine
from postern.observe import CallLog
from postern.settings import Settings
from postern.stores.schema import migrate
from postern.stores.store import Store
from postern.stores.vault import key_from_file
from postern.usecases.compiling import compile_webhook
from postern.usecases.directory import Directory
from postern.usecases.gateway import Gateway
from postern.usecases.ports import Engine


def secret_keys(settings: Settings) -> list[str]:
    if settings.secret_keys:
        return settings.secret_keys
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    return [key_from_file(settings.data_dir / "secret.key")]


def make_store(settings: Settings) -> Store:
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    return Store(settings.database, secret_keys(settings))


def make_engine(settings: Settings) -> Engine | None:
    if settings.engine == "none":
        return None
    return EmbeddedEngine(settings.data_dir, settings.workflows)


@asynccontextmanager
async def opened(settings: Settings, serving_on: str | None = None) -> AsyncIterator[Gateway]:
    """A gateway ready for use cases. ``serving_on`` is the address it serves on: only then it has an engine and dispatches."""
    store = make_store(settings)
    await store.open()
    base_url = settings.base_url or serving_on or f"http://{settings.host}:{settings.port}"
    engine = make_engine(settings) if serving_on else None
    gateway = Gateway(
        store=store,
        directory=Directory(store.webhooks, compile_webhook),
        presets=presets,
        base_url=base_url,
        callback_url=serving_on if serving_on and settings.engine == "embedded" else base_url,
        response_key=hmac.new(secret_keys(settings)[0].encode(), b"postern response tokens", hashlib.sha256).digest(),
        engine=engine,
        call_log=CallLog(style=settings.log),
    )
    try:
        await gateway.directory.refresh()
        yield gateway
    finally:
        if engine is not None:
            await engine.close()
        gateway.call_log.flush()
        await store.close()
