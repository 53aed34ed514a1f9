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
from postern.stores.copying import CannotCopy, copy_all
from postern.stores.sql import schema
from postern.stores.sql.database import Database
from postern.stores.vault import VaultError
from postern.surfaces.cli.main import make_cli
from postern.surfaces.cli.run import FAILED, UNAVAILABLE, USAGE, end, session
from postern.surfaces.http.workers import Place
from postern.usecases.runtime.gateway import Gateway
from postern.wiring.gateway import database_held, opened


def start(workers: int = 1, place: str | None = None) -> None:
    from postern.wiring.serving import serve, serve_with

    settings = _settings()
    set_up_logs(settings.log)
    with _told_in_words():
        if workers > 1:
            sys.exit(asyncio.run(serve_with(settings, workers)))
        uvloop.run(serve(settings, Place.read(place) if place else None))


def migrate() -> str:
    settings = _settings()
    with _told_in_words():
        database = Database(settings.database)
        schema.migrate(database)
        database.close()
    return f"The schema is {schema.newest()}."


def copy(whence: str, where: str, told: Callable[[str, int, int], None]) -> dict[str, int]:
    """Everything from one database to another; how many rows each table has."""
    file = make_url(whence).database if whence.startswith("sqlite") else None
    if file is not None and not Path(file).exists():
        end(f"There is no database {file}.", USAGE)
    source, target = Database(whence), Database(where)
    try:
        # A gateway on either of them would write what is not copied, or what nobody expects there.
        with (
            database_held(source.url.database or "") if source.is_sqlite else nullcontext(),
            database_held(target.url.database or "") if target.is_sqlite else nullcontext(),
            _told_in_words(),
        ):
            return {name: held.rows for name, held in copy_all(source, target, told).items()}
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


def _say_if_new(settings: Settings) -> None:
    """Most likely the command was typed in another folder than the one from which the gateway was started."""
    file = make_url(settings.database).database if settings.is_sqlite else None
    if file is not None and not Path(file).exists():
        print(
            f"There was no database in {Path(file).parent}: a new one is begun. POSTERN_DATA_DIR says where it is.",
            file=sys.stderr,
        )


@contextmanager
def _told_in_words() -> Iterator[None]:
    """What stops the program at its start is said in a sentence, not in a traceback."""
    try:
        yield
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
        _say_if_new(settings)
        with _told_in_words():
            async with opened(settings) as gateway:
                yield gateway

    session.open = open_for_a_command
    return make_cli(start, lambda: _settings().listed(), migrate, copy)()
