"""The schema's version: brought up to date on SQLite by itself, on Postgres only when told to."""

from functools import cache
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from postern.stores.database import Database


class SchemaMismatch(Exception):
    """The database is not the one this program knows; the message says what to do."""


def _config(database: Database | None = None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    if database is not None:
        config.attributes["engine"] = database.writer
    return config


@cache
def newest() -> str:
    return ScriptDirectory.from_config(_config()).get_current_head() or ""


def revision(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


def migrate(database: Database) -> None:
    command.upgrade(_config(database), "head")


def verify(database: Database) -> None:
    found, known = database.read_now(revision), newest()
    if found == known:
        return
    revisions = {script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions()}
    if found is not None and found not in revisions:
        raise SchemaMismatch(
            f"the database has schema {found}, which this version of Postern does not know: run the newer version that made it"
        )
    raise SchemaMismatch(f"the database has schema {found or 'none'} and this version needs {known}: run `postern migrate`")
