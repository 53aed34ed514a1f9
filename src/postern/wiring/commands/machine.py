"""What only the machine can do that a command is typed on. It is loaded for the commands that do it: most ask the API
and no more."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from sqlalchemy.engine import make_url

from postern.core.access.accounts import LEVELS, Actor
from postern.core.documents import Document
from postern.extras import missing
from postern.settings import database_address
from postern.stores.copying import CannotCopy, copy_all, finished
from postern.stores.sql import schema
from postern.stores.sql.database import Database
from postern.surfaces.cli.gateway.backups import Manifest, Restored
from postern.surfaces.cli.run import CONFLICT, FAILED, USAGE, end
from postern.surfaces.mcp import load_sdk
from postern.surfaces.rest.inside import COMMAND_LINE
from postern.usecases.history import samples
from postern.usecases.operations import export, key_rotation, retention
from postern.usecases.runtime.gateway import Gateway
from postern.wiring.backup.contents import BackupFailed, is_own
from postern.wiring.backup.making import back_up
from postern.wiring.backup.restoring import restore
from postern.wiring.commands.database import LocalDatabase
from postern.wiring.gateway import database_held, workflows_of
from postern.wiring.settings import settings_or_end
from postern.wiring.starting import ends_at_ctrl_c, ends_in_a_sentence
from postern.workflows import Rehearsal, rehearse
from postern.workflows.scaffold import keep, keep_test


class OnThisMachine:
    def __init__(self, local: LocalDatabase) -> None:
        self._settings = local.known
        self._run = local.run

    def plan_pruning(self) -> dict[str, int]:
        return self._run(lambda gateway: retention.plan(gateway, COMMAND_LINE))

    def prune(self, report: Callable[[str, int], None]) -> dict[str, int]:
        return self._run(lambda gateway: retention.prune(gateway, COMMAND_LINE, report))

    def rotate_key(self) -> int:
        return self._run(lambda gateway: key_rotation.rotate_key(gateway, COMMAND_LINE))

    def back_up(self, file: Path, *, with_keys: bool, passphrase: str | None, replace: bool) -> Manifest:
        with _fails_in_a_sentence():
            return back_up(self._settings, file, with_keys=with_keys, passphrase=passphrase, replace=replace)

    def restore(self, file: Path, *, passphrase: str | None, replace: bool) -> Restored:
        with _fails_in_a_sentence():
            return restore(self._settings, file, passphrase=passphrase, replace=replace)

    def is_own(self, file: Path) -> bool:
        return is_own(self._settings, file)

    def export_everything(self, write: Callable[[bytes], object]) -> None:
        self._run(lambda gateway: export.everything(gateway, COMMAND_LINE, write))

    def speak_mcp(self, level: str) -> None:
        # With an id, as a key has one: what is not shown to keys is not shown to a model.
        actor = Actor("command line (MCP)", next(one for one in LEVELS if one == level), "mcp")
        self._run(lambda gateway: load_sdk().serve_stdio(gateway, actor))

    def workflows_folder(self) -> Path:
        path = workflows_of(self._settings)
        return (path.parent if path.suffix == ".py" else path).resolve()

    def write_workflow(self, name: str, webhook: str) -> Path:
        return self._run(lambda gateway: samples.write_workflow(gateway, COMMAND_LINE, name, webhook))

    def try_workflow(self, name: str, webhook: str) -> Rehearsal:
        async def tried(gateway: Gateway) -> Rehearsal:
            with ends_at_ctrl_c():
                return await samples.try_workflow(gateway, COMMAND_LINE, name, webhook)

        return self._run(tried)

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


@contextmanager
def _fails_in_a_sentence() -> Iterator[None]:
    try:
        with ends_in_a_sentence():
            yield
    except BackupFailed as error:
        end(str(error), FAILED)


def migrate() -> str:
    settings = settings_or_end()
    with ends_in_a_sentence():
        database = Database(settings.database)
        schema.migrate(database)
        database.close()
    return schema.newest()


def copy(whence: str, where: str, on_progress: Callable[[str, int, int], None]) -> dict[str, int] | None:
    """Everything from one database to another; how many rows each table has, or None where it was done before."""
    try:
        whence, where = database_address(whence), database_address(where)
    except ValueError as error:
        end(f"--from and --to must be {error}", USAGE)
    if whence == where:
        end("--from and --to are the same database", USAGE)
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
