"""`postern`: the commands, and what they are handed of the wiring. On this machine they ask the gateway that serves its data,
and where none does, the same application in the process of the command."""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from postern.core.operations.shown_setting import ShownSetting
from postern.interruption import ends_at_once
from postern.settings import SettingError, Settings
from postern.surfaces.cli.entry import run_typed
from postern.surfaces.cli.gateway.api import api
from postern.surfaces.cli.gateway.beside import GatewaySocket, digests
from postern.surfaces.cli.gateway.machine import Local, Machine
from postern.surfaces.cli.gateway.source import HttpAnswer, HttpQuestion
from postern.surfaces.cli.run import NOT_FOUND, USAGE, end

if TYPE_CHECKING:
    from postern.wiring.machine import OnThisMachine

LOOK_EVERY = 1.0


def check_owner(settings: Settings) -> None:
    """A folder that merely lies where the command is typed may be somebody else's, who would be told the secrets that are
    set there. One that is named is meant."""
    folder = settings.data_dir
    if "data_dir" not in settings.sources and folder.exists():
        owner = folder.stat().st_uid
        if owner not in (0, os.geteuid()):
            end(
                f"{folder.resolve()} belongs to another user; name it with POSTERN_DATA_DIR if you mean it",
                USAGE,
            )


def on_this_machine() -> "type[OnThisMachine]":
    """Nothing else than this loads the wiring, the store and the web framework: a command that a gateway answers needs none of
    them, and they take longer to load than it takes."""
    with ends_at_once():
        from postern.wiring.machine import OnThisMachine

    return OnThisMachine


class LocalApi:
    def __init__(self, settings: Settings) -> None:
        check_owner(settings)
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
        answer = self._beside.ask(question, within)
        self.is_served = answer is not None
        return answer or self._opened().ask(question)

    def news(self, webhook: str | None) -> Iterator[bytes | None]:
        while True:
            yield None
            time.sleep(LOOK_EVERY)

    def settings(self) -> list[ShownSetting]:
        return self._settings.listed()

    def machine(self) -> Machine:
        return self._opened()

    def close(self) -> None:
        if self._machine is not None:
            self._machine.close()

    def _opened(self) -> "OnThisMachine":
        with self._turn:
            if self._machine is None:
                self._machine = on_this_machine()(self._settings)
            return self._machine


def settings_or_end(also: Mapping[str, str] = MappingProxyType({})) -> Settings:
    try:
        return Settings({**os.environ, **also})
    except SettingError as error:
        end(str(error), USAGE)
    except FileNotFoundError:  # a relative path has no beginning
        end("The folder in which this was typed has been deleted; go to another one", USAGE)


class Wired:
    def local(self) -> Local:
        return LocalApi(settings_or_end())

    def serve(self, workers: int, slot: str | None, example: bool) -> None:
        settings = settings_or_end({"POSTERN_EXAMPLE": "on"} if example else {})
        on_this_machine()(settings).serve(workers, slot, example)

    def develop(self, workflows: Path | None, port: int | None, example: bool) -> None:
        given = {"POSTERN_LOG": "off", "POSTERN_EXAMPLE": "on" if example else None}
        given |= {
            "POSTERN_WORKFLOWS": str(workflows) if workflows else None,
            "POSTERN_PORT": str(port) if port else None,
        }
        settings = settings_or_end({name: value for name, value in given.items() if value is not None})
        if settings.engine != "embedded":
            end(
                f"`postern dev` is for workflow files, and POSTERN_ENGINE={settings.engine} runs none of them.",
                USAGE,
            )
        if workflows is not None and not workflows.exists():
            end(f"{workflows} does not exist", NOT_FOUND)
        on_this_machine()(settings).develop(example)

    def migrate(self) -> str:
        return on_this_machine()(settings_or_end()).migrate()

    def copy(
        self, whence: str, where: str, on_progress: Callable[[str, int, int], None]
    ) -> dict[str, int] | None:
        return on_this_machine().copy(whence, where, on_progress)


def cli() -> int:
    api.wiring = Wired()
    return run_typed(sys.argv[1:])
