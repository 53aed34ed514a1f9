"""`postern`: the commands, with what they need from the wiring. It is loaded when a command wants it: `--help` and a
command that goes over the network need none of it, and it takes most of a second."""

import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from postern.interruption import ends_at_once
from postern.surfaces.cli.entry import run_typed
from postern.surfaces.cli.gateway.machine import Local
from postern.surfaces.cli.main import enter_wired
from postern.surfaces.cli.run import NOT_FOUND, USAGE, end


def start(workers: int = 1, slot: str | None = None, example: bool = False) -> None:
    with ends_at_once():
        import asyncio

        import uvloop

        from postern.observe.logs import set_up_logs
        from postern.wiring.serving import serve, serve_with
        from postern.wiring.settings import settings_or_end
        from postern.wiring.starting import ends_in_a_sentence
        from postern.wiring.workers.slot import WorkerSlot

    settings = settings_or_end({"POSTERN_EXAMPLE": "on"} if example else {})
    set_up_logs(settings.log)
    with ends_in_a_sentence(settings.log):
        if example and settings.engine == "embedded":
            _write_example(settings.workflows)
        if workers > 1:
            sys.exit(asyncio.run(serve_with(settings, workers)))
        uvloop.run(serve(settings, WorkerSlot.parse(slot) if slot else None))


def develop(workflows: Path | None, port: int | None, example: bool) -> None:
    with ends_at_once():
        import uvloop

        from postern.observe.logs import set_up_logs
        from postern.wiring.develop import develop
        from postern.wiring.settings import settings_or_end
        from postern.wiring.starting import ends_in_a_sentence

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
    set_up_logs(settings.log)
    with ends_in_a_sentence(), suppress(KeyboardInterrupt):  # while it starts or ends
        if example:
            _write_example(settings.workflows)
        uvloop.run(develop(settings))


def migrate() -> str:
    with ends_at_once():
        from postern.wiring.commands.machine import migrate

    return migrate()


def copy(whence: str, where: str, on_progress: Callable[[str, int, int], None]) -> dict[str, int] | None:
    with ends_at_once():
        from postern.wiring.commands.machine import copy

    return copy(whence, where, on_progress)


def local() -> Local:
    with ends_at_once():
        from postern.observe.logs import set_up_logs
        from postern.wiring.commands.local import LocalApi
        from postern.wiring.settings import settings_or_end

    settings = settings_or_end()
    set_up_logs("off" if settings.log == "off" else "text")
    return LocalApi(settings)


def _write_example(workflows: Path) -> None:
    """A file of the user's own from then on: one that lies there already stays as it is."""
    from postern.wiring.starting import CannotStart
    from postern.workflows.example import EXAMPLE

    file = workflows / EXAMPLE.name
    try:
        workflows.mkdir(parents=True, exist_ok=True)
        if not file.exists():
            file.write_bytes(EXAMPLE.read_bytes())
    except OSError as error:
        raise CannotStart(f"The example cannot be written to {file}: {error.strerror}", USAGE) from error


def cli() -> int:
    enter_wired(local, start, develop, migrate, copy)
    return run_typed(sys.argv[1:])
