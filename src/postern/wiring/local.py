"""What commands do on this machine: the API on the local database, without a server, and what only the machine can
do at all."""

import asyncio
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy.engine import make_url

from postern.core.access.accounts import LEVELS, Actor
from postern.core.documents import Document
from postern.core.operations.shown_setting import ShownSetting
from postern.core.problems import Refused
from postern.extras import missing
from postern.settings import Settings
from postern.stores.copying import CannotCopy, copy_all, finished
from postern.stores.sql import schema
from postern.stores.sql.database import Database
from postern.surfaces.cli.gateway.api import end_refused
from postern.surfaces.cli.gateway.backups import Manifest, Restored
from postern.surfaces.cli.gateway.source import Answer
from postern.surfaces.cli.run import CONFLICT, FAILED, USAGE, end
from postern.surfaces.mcp import load_sdk
from postern.surfaces.rest import inside
from postern.usecases.history import samples
from postern.usecases.operations import export, key_rotation, retention
from postern.usecases.runtime.gateway import Gateway
from postern.wiring import backup
from postern.wiring.gateway import database_held, opened, workflows_of
from postern.wiring.starting import ends_in_a_sentence, settings_or_end
from postern.workflows import Rehearsal, rehearse
from postern.workflows.scaffold import keep, keep_test

T = TypeVar("T")

LOOK_EVERY = 1.0

# Whoever may open the database file may do everything anyway.
ACTOR = Actor("command line", "admin")


class Local:
    """The gateway is opened when it is first needed and stays open until the command ends."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._runner = asyncio.Runner()
        self._opened = AsyncExitStack()
        self._gateway: Gateway | None = None
        self._turn = threading.Lock()
        """`postern listen` asks from several threads, and there is one loop."""

    def ask(
        self,
        method: str,
        path: str,
        query: dict[str, str],
        body: bytes | None,
        within: float | None = None,
    ) -> Answer:
        async def answer(gateway: Gateway) -> Answer:
            response = await inside.ask(gateway, ACTOR, method, path, query, body)
            return Answer(response.status_code, bytes(response.body))

        return self._run(answer)

    def news(self, webhook: str | None) -> Iterator[bytes | None]:
        while True:
            yield None
            time.sleep(LOOK_EVERY)

    def settings(self) -> list[ShownSetting]:
        return self._settings.listed()

    def plan_pruning(self) -> dict[str, int]:
        return self._run(lambda gateway: retention.plan(gateway, ACTOR))

    def prune(self, report: Callable[[str, int], None]) -> dict[str, int]:
        return self._run(lambda gateway: retention.prune(gateway, ACTOR, report))

    def rotate_key(self) -> int:
        return self._run(lambda gateway: key_rotation.rotate_key(gateway, ACTOR))

    def back_up(self, file: Path, *, with_keys: bool, passphrase: str | None, replace: bool) -> Manifest:
        with _fails_in_a_sentence():
            return backup.back_up(
                self._settings, file, with_keys=with_keys, passphrase=passphrase, replace=replace
            )

    def restore(self, file: Path, *, passphrase: str | None, replace: bool) -> Restored:
        with _fails_in_a_sentence():
            return backup.restore(self._settings, file, passphrase=passphrase, replace=replace)

    def export_everything(self, write: Callable[[bytes], object]) -> None:
        self._run(lambda gateway: export.everything(gateway, ACTOR, write))

    def speak_mcp(self, level: str) -> None:
        actor = Actor("command line (MCP)", next(one for one in LEVELS if one == level))
        self._run(lambda gateway: load_sdk().serve_stdio(gateway, actor))

    def workflows_folder(self) -> Path:
        path = workflows_of(self._settings)
        return (path.parent if path.suffix == ".py" else path).resolve()

    def write_workflow(self, name: str, webhook: str) -> Path:
        return self._run(lambda gateway: samples.write_workflow(gateway, ACTOR, name, webhook))

    def try_workflow(self, name: str, webhook: str) -> Rehearsal:
        return self._run(lambda gateway: samples.try_workflow(gateway, ACTOR, name, webhook))

    def keep_workflow(self, name: str, text: str) -> Path:
        try:
            return keep(self._settings.workflows, name, text)
        except FileExistsError as error:
            end(f"{error.filename} exists already", CONFLICT, "conflict")
        except OSError as error:
            end(f"{error.filename} cannot be written: {error.strerror}. Say --print to see it.", USAGE)

    def keep_test(self, workflow: Path, event: Document) -> list[Path]:
        try:
            return keep_test(workflow, event)
        except FileExistsError as error:
            end(f"{workflow} is written. {error.filename} exists already", CONFLICT, "conflict")
        except OSError as error:
            end(f"{workflow} is written. {error.filename} cannot be written: {error.strerror}", USAGE)

    def rehearse(self, name: str, event: dict[str, Any]) -> Rehearsal:
        return rehearse(self._settings.workflows, name, event)

    def close(self) -> None:
        with ends_in_a_sentence():
            if self._gateway is not None:
                self._gateway = None
                self._runner.run(self._opened.aclose())
            self._runner.close()

    def _run(self, use_case: Callable[[Gateway], Awaitable[T]]) -> T:
        async def inside_the_loop() -> T:
            if self._gateway is None:
                _warn_if_new(self._settings)
                self._gateway = await self._opened.enter_async_context(opened(self._settings))
            return await use_case(self._gateway)

        with self._turn, ends_in_a_sentence():
            try:
                return self._runner.run(inside_the_loop())
            except Refused as refused:
                end_refused(refused)


@contextmanager
def _fails_in_a_sentence() -> Iterator[None]:
    try:
        with ends_in_a_sentence():
            yield
    except backup.BackupFailed as error:
        end(str(error), FAILED)


def _warn_if_new(settings: Settings) -> None:
    """Most likely the command was typed in another folder than the one from which the gateway was started."""
    file = make_url(settings.database).database if settings.is_sqlite else None
    if file is not None and not Path(file).exists():
        print(
            f"There was no database in {Path(file).parent}: a new one is begun. POSTERN_DATA_DIR says where it is.",
            file=sys.stderr,
        )


def migrate() -> str:
    settings = settings_or_end()
    with ends_in_a_sentence():
        database = Database(settings.database)
        schema.migrate(database)
        database.close()
    return schema.newest()


def copy(whence: str, where: str, on_progress: Callable[[str, int, int], None]) -> dict[str, int] | None:
    """Everything from one database to another; how many rows each table has, or None where it was done before."""
    file = make_url(whence).database if whence.startswith("sqlite") else None
    if file is not None and not Path(file).exists():
        end(f"There is no database {file}.", USAGE)
    sentence = missing("postgres", "A Postgres database")
    if sentence and any(url.startswith("postgresql") for url in (whence, where)):
        end(sentence, USAGE)
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
