"""`postern`: connects the commands with this machine. They ask the gateway that serves its data, and if none
does, the same application in their own process."""

import os
import sys
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from postern.core.operations.shown_setting import ShownSetting
from postern.interruption import ends_at_once
from postern.settings import SettingError, Settings
from postern.surfaces.cli.entry import run_typed
from postern.surfaces.cli.gateway.api import api
from postern.surfaces.cli.gateway.beside import GatewaySocket, digests
from postern.surfaces.cli.gateway.machine import Machine
from postern.surfaces.cli.gateway.source import HttpAnswer, HttpQuestion
from postern.surfaces.cli.run import end

if TYPE_CHECKING:
    from postern.wiring.machine import OnThisMachine

ASK_DATABASE_EVERY = 1.0


def check_owner(settings: Settings) -> None:
    """Ends the command in a data folder of another user that nobody has named: its owner could read the secrets
    that are set there."""
    folder = settings.data_dir
    if "data_dir" not in settings.sources and folder.exists():
        owner = folder.stat().st_uid
        if owner not in (0, os.geteuid()):
            end(f"{folder.resolve()} belongs to another user; name it with POSTERN_DATA_DIR if you mean it")


def on_this_machine() -> "type[OnThisMachine]":
    """Loads the wiring, the store and the web framework. Only this function does: it takes longer than a
    command that a gateway answers."""
    with ends_at_once():
        from postern.wiring.machine import OnThisMachine

    return OnThisMachine


class LocalApi:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        known = digests(settings)
        self._beside = GatewaySocket(
            settings.data_dir,
            {name: known[name] for name in settings.sources},
            is_named="data_dir" in settings.sources,
        )
        self._machine: OnThisMachine | None = None
        self.is_served = False
        self._turn = threading.Lock()
        """`postern listen` asks from several threads, and there is one application."""

    def ask(self, question: HttpQuestion, within: float | None = None) -> HttpAnswer:
        check_owner(self._settings)
        answer = self._beside.ask(question, within)
        self.is_served = answer is not None
        return answer or self._opened().ask(question)

    def news(self, webhook: str | None) -> Iterator[bytes | None]:
        while True:
            yield None
            time.sleep(ASK_DATABASE_EVERY)

    def settings(self) -> list[ShownSetting]:
        return self._settings.listed()

    def machine(self, of_any_owner: bool = False) -> Machine:
        if not of_any_owner:
            check_owner(self._settings)
        return self._opened()

    def close(self) -> None:
        if self._machine is not None:
            self._machine.close()

    def _opened(self) -> "OnThisMachine":
        with self._turn:
            if self._machine is None:
                self._machine = on_this_machine()(self._settings)
            return self._machine


def open_local() -> LocalApi:
    try:
        return LocalApi(Settings(os.environ))
    except SettingError as error:
        end(str(error))
    except FileNotFoundError:  # a relative path has no beginning
        end("The folder in which this was typed has been deleted; go to another one")


def cli() -> int:
    api.open_local = open_local
    return run_typed(sys.argv[1:])
