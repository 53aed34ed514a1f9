"""`postern`: the commands, and what they are handed of the wiring."""

import sys
from collections.abc import Callable
from pathlib import Path

from postern.surfaces.cli.entry import run_typed
from postern.surfaces.cli.gateway.api import api
from postern.surfaces.cli.gateway.machine import Local
from postern.surfaces.cli.run import NOT_FOUND, USAGE, end
from postern.wiring.commands.local import LocalApi, on_this_machine
from postern.wiring.settings import settings_or_end


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
