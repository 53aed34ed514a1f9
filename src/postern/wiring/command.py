"""`postern`: the commands, with what they need from the wiring."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import uvloop
from sqlalchemy.engine import make_url

from postern.core.history.invocation import StoreUnavailable
from postern.observe import set_up_logs
from postern.settings import SettingError, Settings
from postern.stores.copying import CannotCopy, copy_all, finished
from postern.stores.sql import schema
from postern.stores.sql.database import Database
from postern.stores.vault import VaultError
from postern.surfaces.cli.main import make_cli
from postern.surfaces.cli.run import FAILED, UNAVAILABLE, USAGE, end
from postern.usecases.runtime.gateway import Gateway
from postern.wiring.gateway import database_held, opened
from postern.wiring.starting import CannotStart
from postern.wiring.workers.slot import WorkerSlot


def start(workers: int = 1, slot: str | None = None) -> None:
    from postern.wiring.serving import serve, serve_with

    settings = _settings()
    set_up_logs(settings.log)
    with _ends_in_a_sentence():
        if workers > 1:
            sys.exit(asyncio.run(serve_with(settings, workers)))
        uvloop.run(serve(settings, WorkerSlot.parse(slot) if slot else None))


def migrate() -> str:
    settings = _settings()
    with _ends_in_a_sentence():
        database = Database(settings.database)
        schema.migrate(database)
        database.close()
    return f"The schema is {schema.newest()}."


def copy(whence: str, where: str, on_progress: Callable[[str, int, int], None]) -> dict[str, int] | None:
    """Everything from one database to another; how many rows each table has, or None where it was done before."""
    file = make_url(whence).database if whence.startswith("sqlite") else None
    if file is not None and not Path(file).exists():
        end(f"There is no database {file}.", USAGE)
    source, target = Database(whence), Database(where)
    try:
        # A gateway on either of them would write what is not copied, or what nobody expects there.
        with (
            _ends_in_a_sentence(),
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


def _settings() -> Settings:
    try:
        return Settings()
    except SettingError as error:
        end(str(error), USAGE)


def _warn_if_new(settings: Settings) -> None:
    """Most likely the command was typed in another folder than the one from which the gateway was started."""
    file = make_url(settings.database).database if settings.is_sqlite else None
    if file is not None and not Path(file).exists():
        print(
            f"There was no database in {Path(file).parent}: a new one is begun. POSTERN_DATA_DIR says where it is.",
            file=sys.stderr,
        )


@contextmanager
def _ends_in_a_sentence() -> Iterator[None]:
    """What stops the program at its start is said in a sentence, not in a traceback."""
    try:
        yield
    except CannotStart as error:
        end(str(error), error.exit_code)
    except (schema.SchemaMismatch, VaultError) as error:
        end(str(error), UNAVAILABLE)
    except StoreUnavailable as error:
        end(f"The database cannot be used: {error}", UNAVAILABLE)
    except SettingError as error:
        end(str(error), USAGE)
    except OSError as error:
        if not error.filename:
            raise
        end(f"{error.filename} cannot be used: {error.strerror}", USAGE)
    except KeyboardInterrupt:
        sys.exit(130)


def cli() -> Any:
    @asynccontextmanager
    async def open_for_a_command() -> AsyncIterator[Gateway]:
        settings = _settings()
        set_up_logs("off" if settings.log == "off" else "text")
        _warn_if_new(settings)
        with _ends_in_a_sentence():
            async with opened(settings) as gateway:
                yield gateway

    return make_cli(open_for_a_command, start, lambda: _settings().listed(), migrate, copy)()
