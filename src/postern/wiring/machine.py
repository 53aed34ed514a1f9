"""The machine of a command. It opens the application in the command's own process if no gateway can be asked,
and works on files. It loads everything."""

import asyncio
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import uvloop
from sqlalchemy.engine import make_url

from postern.core.access.accounts import LEVELS, Actor
from postern.core.documents import Document
from postern.core.problems import Refused
from postern.extras import missing
from postern.observe.logs import set_up_logs
from postern.private_files import make_folder
from postern.settings import Settings, database_address
from postern.stores.copying import CannotCopy, copy_all, finished
from postern.stores.sql import schema
from postern.stores.sql.database import Database
from postern.surfaces.cli.develop.dev_lines import DevLines
from postern.surfaces.cli.gateway.api import end_refused
from postern.surfaces.cli.gateway.machine import Manifest, Restored
from postern.surfaces.cli.gateway.source import HttpAnswer, HttpQuestion
from postern.surfaces.cli.run import CONFLICT, FAILED, USAGE, end
from postern.surfaces.mcp import load_sdk
from postern.surfaces.rest.app import make_api
from postern.surfaces.session import COMMAND_LINE
from postern.usecases.operations import export, retention, settings
from postern.usecases.runtime.gateway import Gateway
from postern.wiring.answering import answer_here
from postern.wiring.backup.contents import is_own
from postern.wiring.backup.making import back_up
from postern.wiring.backup.restoring import restore
from postern.wiring.gateway import database_file, database_held, load_workflows, opened, workflows_of
from postern.wiring.serving import serve, serve_with
from postern.wiring.starting import CannotStart, ends_in_a_sentence
from postern.wiring.workers.worker import WorkerSlot
from postern.workflows import Rehearsal, rehearse
from postern.workflows.example import EXAMPLE
from postern.workflows.load import Loaded
from postern.workflows.scaffold import keep, keep_test

T = TypeVar("T")


class OnThisMachine:
    """Opens the gateway when it is first needed. It stays open until the command ends."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._runner = asyncio.Runner()
        self._opened = AsyncExitStack()
        self._gateway: Gateway | None = None
        self._turn = threading.Lock()
        """`postern listen` asks from several threads, and there is one loop."""

    def ask(self, question: HttpQuestion) -> HttpAnswer:
        begins = question.method != "GET"
        return self._run(lambda gateway: answer_here(make_api(gateway), question), begins)

    def close(self) -> None:
        with ends_in_a_sentence():
            if self._gateway is not None:
                self._gateway = None
                self._runner.run(self._opened.aclose())
            self._runner.close()

    def _run(self, use_case: Callable[[Gateway], Awaitable[T]], begins: bool = False) -> T:
        """``begins``: make a database if there is none, because the command has something to write."""

        async def inside_the_loop() -> T:
            if self._gateway is None:
                set_up_logs("off" if self._settings.log == "off" else "text")
                file = database_file(self._settings)
                is_new = file is not None and not file.exists()
                self._gateway = await self._opened.enter_async_context(
                    opened(self._settings, migrates=False, begins=begins)
                )
                # Most likely the command was typed in another folder than `serve`.
                if file is not None and is_new:
                    print(
                        f"There was no database in {file.parent}: a new one was begun. POSTERN_DATA_DIR says where it is.",
                        file=sys.stderr,
                    )
            return await use_case(self._gateway)

        with self._turn, ends_in_a_sentence():
            try:
                return self._runner.run(inside_the_loop())
            except Refused as refused:
                end_refused(refused)

    def serve(self, workers: int, slot: str | None, example: bool) -> None:
        settings = self._settings
        set_up_logs(settings.log)
        with ends_in_a_sentence(settings.log):
            if example and settings.engine == "embedded":
                _write_example(settings.workflows)
            if workers > 1:
                sys.exit(asyncio.run(serve_with(settings, workers)))
            uvloop.run(serve(settings, msgspec.json.decode(slot, type=WorkerSlot) if slot else None))

    def develop(self, example: bool) -> None:
        if self._settings.engine != "embedded":
            engine = self._settings.engine
            end(f"`postern dev` is for workflow files, and POSTERN_ENGINE={engine} runs none of them.")
        set_up_logs(self._settings.log)
        with ends_in_a_sentence(), suppress(KeyboardInterrupt):  # while it starts or ends
            if example:
                _write_example(self._settings.workflows)
            uvloop.run(serve(self._settings, lines=DevLines()))

    def migrate(self) -> str:
        with ends_in_a_sentence():
            database = Database(self._settings.database)
            schema.migrate(database)
            schema.verify(database)  # else it would claim to have migrated a database that it cannot
            database.close()
        return schema.newest()

    @staticmethod
    def copy(whence: str, where: str, on_progress: Callable[[str, int, int], None]) -> dict[str, int] | None:
        try:
            whence, where = database_address(whence), database_address(where)
        except ValueError as error:
            end(f"--from and --to must be {error}")
        if whence == where:
            end("--from and --to are the same database")
        file = make_url(whence).database if whence.startswith("sqlite") else None
        if file is not None and not Path(file).exists():
            end(f"There is no database {file}.")
        sentence = missing("postgres", "A Postgres database")
        if sentence and any(url.startswith("postgresql") for url in (whence, where)):
            end(sentence)
        source, target = Database(whence), Database(where)
        try:
            # A gateway on either of them would write what is not copied, or what nobody expects there.
            with (
                ends_in_a_sentence(),
                database_held(source.url.database or "") if source.is_sqlite else nullcontext(),
                database_held(target.url.database or "") if target.is_sqlite else nullcontext(),
            ):
                if finished(source, target):
                    return None
                return {name: held.rows for name, held in copy_all(source, target, on_progress).items()}
        except CannotCopy as refused:
            end(str(refused), FAILED)
        finally:
            source.close()
            target.close()

    def plan_pruning(self) -> dict[str, int]:
        return self._run(lambda gateway: retention.plan(gateway, COMMAND_LINE))

    def prune(self, report: Callable[[str, int], None]) -> dict[str, int]:
        return self._run(lambda gateway: retention.prune(gateway, COMMAND_LINE, report))

    def rotate_key(self) -> int:
        return self._run(lambda gateway: settings.rotate_key(gateway, COMMAND_LINE))

    def back_up(self, file: Path, *, with_keys: bool, passphrase: str | None, replace: bool) -> Manifest:
        with ends_in_a_sentence():
            return back_up(self._settings, file, with_keys=with_keys, passphrase=passphrase, replace=replace)

    def restore(self, file: Path, *, passphrase: str | None, replace: bool) -> Restored:
        with ends_in_a_sentence():
            return restore(self._settings, file, passphrase=passphrase, replace=replace)

    def is_own(self, file: Path) -> bool:
        return is_own(self._settings, file)

    def export_everything(self, write: Callable[[bytes], object]) -> None:
        self._run(lambda gateway: export.everything(gateway, COMMAND_LINE, write))

    def speak_mcp(self, level: str) -> None:
        # With an id, as a key has one: what is not shown to keys is not shown to a model.
        actor = Actor("command line (MCP)", next(name for name in LEVELS if name == level), "mcp")
        self._run(lambda gateway: load_sdk().serve_stdio(gateway, actor), begins=True)

    def load_workflows(self, path: Path | None) -> Loaded:
        return load_workflows(path or workflows_of(self._settings))

    def workflows_folder(self) -> Path:
        path = workflows_of(self._settings)
        return (path.parent if path.suffix == ".py" else path).resolve()

    def keep_workflow(self, name: str, text: str) -> Path:
        folder = workflows_of(self._settings)
        if folder.suffix == ".py":
            file_named = "POSTERN_WORKFLOWS names a file and not a folder: print the workflow and put it where you want it"
            end(file_named, CONFLICT, "conflict")
        with _written(instead=". Say --print to see it."):
            return keep(folder, name, text)

    def keep_test(self, workflow: Path, event: Document) -> list[Path]:
        with _written(f"{workflow} is written. "):
            return keep_test(workflow, event)

    def rehearse(self, name: str, event: dict[str, Any]) -> Rehearsal:
        return rehearse(workflows_of(self._settings), name, event)


@contextmanager
def _written(before: str = "", instead: str = "") -> Iterator[None]:
    """Ends the command with a sentence if a workflow file cannot be written."""
    try:
        yield
    except FileExistsError as error:
        end(f"{before}{error.filename} exists already", CONFLICT, "conflict")
    except OSError as error:
        end(f"{before}{error.filename} cannot be written: {error.strerror}{instead}")


def _write_example(workflows: Path) -> None:
    """Writes the example workflow, unless the file exists: then it is the user's own."""
    file = workflows / EXAMPLE.name
    try:
        make_folder(workflows)
        if not file.exists():
            file.write_bytes(EXAMPLE.read_bytes())
    except OSError as error:
        raise CannotStart(f"The example cannot be written to {file}: {error.strerror}", USAGE) from error
