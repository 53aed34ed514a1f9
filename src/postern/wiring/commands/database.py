"""A command asks the API on the local database, without a server."""

import asyncio
import sys
import threading
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TypeVar

from sqlalchemy.engine import make_url

from postern.core.problems import Refused
from postern.settings import Settings
from postern.surfaces.cli.gateway.api import end_refused
from postern.surfaces.cli.gateway.source import Answer
from postern.surfaces.rest import inside
from postern.usecases.runtime.gateway import Gateway
from postern.wiring.gateway import opened
from postern.wiring.starting import ends_in_a_sentence

T = TypeVar("T")


class LocalDatabase:
    """The gateway is opened when it is first needed and stays open until the command ends."""

    def __init__(self, settings: Settings) -> None:
        self.known = settings
        self._runner = asyncio.Runner()
        self._opened = AsyncExitStack()
        self._gateway: Gateway | None = None
        self._turn = threading.Lock()
        """`postern listen` asks from several threads, and there is one loop."""

    def ask(self, method: str, path: str, query: dict[str, str], body: bytes | None) -> Answer:
        async def answer(gateway: Gateway) -> Answer:
            response = await inside.ask(gateway, inside.COMMAND_LINE, method, path, query, body)
            return Answer(response.status_code, bytes(response.body))

        return self.run(answer)

    def close(self) -> None:
        with ends_in_a_sentence():
            if self._gateway is not None:
                self._gateway = None
                self._runner.run(self._opened.aclose())
            self._runner.close()

    def run(self, use_case: Callable[[Gateway], Awaitable[T]]) -> T:
        async def inside_the_loop() -> T:
            if self._gateway is None:
                _warn_if_new(self.known)
                self._gateway = await self._opened.enter_async_context(opened(self.known))
            return await use_case(self._gateway)

        with self._turn, ends_in_a_sentence():
            try:
                return self._runner.run(inside_the_loop())
            except Refused as refused:
                end_refused(refused)


def _warn_if_new(settings: Settings) -> None:
    """Most likely the command was typed in another folder than the one from which the gateway was started."""
    file = make_url(settings.database).database if settings.is_sqlite else None
    if file is not None and not Path(file).exists():
        print(
            f"There was no database in {Path(file).parent}: a new one is begun. POSTERN_DATA_DIR says where it is.",
            file=sys.stderr,
        )
