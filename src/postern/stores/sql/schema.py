"""The schema's version: brought up to date on SQLite by itself, on Postgres only when told to.

Alembic is asked only when something has to be done: importing it takes longer than most commands.
"""

from functools import cache
from pathlib import Path

from sqlalchemy import Connection, text

from postern.stores.sql.database import Database

MIGRATIONS = Path(__file__).parent / "migrations"


class SchemaMismatch(Exception):
    """The database is not the one this program knows; the message says what to do."""


@cache
def _known() -> tuple[str, ...]:
    """Every revision there is a migration for, oldest first: the files' names begin with theirs."""
    return tuple(sorted(file.name.partition("_")[0] for file in (MIGRATIONS / "versions").glob("[0-9]*.py")))


def newest() -> str:
    return _known()[-1]


def revision(connection: Connection) -> str | None:
    if not connection.dialect.has_table(connection, "alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


def migrate(database: Database) -> None:
    found = database.read_now(revision)
    if found == newest() or (
        found is not None and found not in _known()
    ):  # a newer one is left to ``verify`` to tell of
        return
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["engine"] = database.writer
    command.upgrade(config, "head")


def verify(database: Database) -> None:
    found = database.read_now(revision)
    if found == newest():
        return
    if found is not None and found not in _known():
        raise SchemaMismatch(
            f"the database has schema {found}, which this version of Postern does not know: run the newer version that made it"
        )
    raise SchemaMismatch(
        f"the database has schema {found or 'none'} and this version needs {newest()}: run `postern migrate`"
    )
