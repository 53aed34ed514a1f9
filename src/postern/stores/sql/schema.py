"""The schema's version: brought up to date on SQLite by the start, on Postgres only on demand.

Alembic is asked only when something has to be done: importing it takes longer than most commands.
"""

from functools import cache
from pathlib import Path

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from postern.core.history.invocation import StoreUnavailable
from postern.stores.sql.database import Database
from postern.stores.sql.tables import metadata

MOST_NAMED = 5

_SQLITE_COLUMNS = """SELECT m.name, c.name, c."notnull" FROM sqlite_master m JOIN pragma_table_info(m.name) c
    WHERE m.type = 'table'"""
_SQLITE_INDEXES = "SELECT name FROM sqlite_master WHERE type = 'index'"
# Not in `information_schema`: its views join a dozen catalogues, which each new connection reads for the first time.
_POSTGRES_COLUMNS = """SELECT t.relname, c.attname, c.attnotnull
    FROM pg_catalog.pg_class t JOIN pg_catalog.pg_attribute c ON c.attrelid = t.oid
    WHERE t.relnamespace = pg_catalog.current_schema()::pg_catalog.regnamespace AND t.relkind IN ('r', 'p')
    AND c.attnum > 0 AND NOT c.attisdropped AND pg_catalog.has_table_privilege(t.oid, 'SELECT')"""
_POSTGRES_RELATIONS = """SELECT 1 FROM pg_catalog.pg_class
    WHERE relnamespace = pg_catalog.current_schema()::pg_catalog.regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'f') LIMIT 1"""
_POSTGRES_INDEXES = """SELECT relname FROM pg_catalog.pg_class
    WHERE relnamespace = pg_catalog.current_schema()::pg_catalog.regnamespace AND relkind = 'i'"""

MIGRATIONS = Path(__file__).parent / "migrations"


class SchemaMismatch(Exception):
    """The database is not the one this program knows; the message says what to do."""


@cache
def _known() -> tuple[str, ...]:
    """Every revision there is a migration for, oldest first: the files' names begin with theirs."""
    return tuple(sorted(file.name.partition("_")[0] for file in (MIGRATIONS / "versions").glob("[0-9]*.py")))


def newest() -> str:
    return _known()[-1]


def why_unknown(name: str) -> str | None:
    """Returns why this version cannot open and migrate a database of that revision, or None."""
    if name in _known():
        return None
    if name < _known()[0]:
        return (
            f"it has schema {name}, of a version before the first release: with that version write its webhooks to a file "
            "(`postern export`), and make them in a new database with this one (`postern apply`)"
        )
    return f"it has schema {name}, which this version of Postern does not know: use the newer version that made it"


def revision(connection: Connection) -> str | None:
    if not connection.dialect.has_table(connection, "alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


def differences(connection: Connection) -> list[str]:
    """Returns what the code expects and the tables do not have. The revision alone says nothing of a database that
    was made by an unfinished version. Additional tables and columns are allowed."""
    sqlite = connection.dialect.name == "sqlite"
    columns = {
        (table, column): bool(filled)
        for table, column, filled in connection.execute(
            text(_SQLITE_COLUMNS if sqlite else _POSTGRES_COLUMNS)
        )
    }
    indexes = set(connection.execute(text(_SQLITE_INDEXES if sqlite else _POSTGRES_INDEXES)).scalars())
    tables = {table for table, _ in columns}
    lacking = [f"table {name} is missing" for name in metadata.tables if name not in tables]
    for table in metadata.tables.values():
        if table.name not in tables:
            continue
        for column in table.columns:
            filled = columns.get((table.name, column.name))
            if filled is None:
                lacking.append(f"column {table.name}.{column.name} is missing")
            elif filled == column.nullable:
                lacking.append(
                    f"column {table.name}.{column.name} {'must' if filled else 'need not'} have a value"
                )
        lacking += [f"index {index.name} is missing" for index in table.indexes if index.name not in indexes]
    return lacking


def migrate(database: Database) -> None:
    version = database.read_now(revision)
    if version == newest() or (version is not None and why_unknown(version)):  # ``verify`` says why
        return
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["engine"] = database.writer
    command.upgrade(config, "head")


def prepare(url: str, *, migrates: bool) -> None:
    """The database as it must be before anything is made of it: an SQLite database is brought up to date, a Postgres database is
    set up where it is empty, for on one that is not another version may still serve. Raises ``SchemaMismatch``, as ``verify``."""
    database = Database(url)
    try:
        if migrates and (database.is_sqlite or database.read_now(_is_empty)):
            migrate(database)
        verify(database)
    except DBAPIError as error:
        raise StoreUnavailable(str(error.orig)) from error
    finally:
        database.close()


def _is_empty(connection: Connection) -> bool:
    return connection.execute(text(_POSTGRES_RELATIONS)).first() is None


def _looked_through(connection: Connection) -> tuple[str | None, list[str]]:
    version = revision(connection)
    return version, differences(connection) if version == newest() else []


def verify(database: Database) -> None:
    """Raises ``SchemaMismatch``, with a sentence that says what differs and what to do."""
    version, lacking = database.read_now(_looked_through)
    if version == newest():
        if lacking:
            named = ", ".join(lacking[:MOST_NAMED]) + (", …" if len(lacking) > MOST_NAMED else "")
            raise SchemaMismatch(
                f"the database says that its schema is {version}, and its tables differ from it: {named}. It was made by an "
                "unfinished version, or changed by hand: restore a backup, or put it right"
            )
        return
    if version is not None and (why := why_unknown(version)):
        raise SchemaMismatch(f"this database cannot be opened: {why}")
    if version is None:
        raise SchemaMismatch(
            "the database is not set up for Postern: `postern serve` does that where it is empty, and `postern migrate` beside other tables"
        )
    raise SchemaMismatch(
        f"the database was made by an older version (its schema is {version}, and this version needs {newest()}): run `postern migrate`"
    )
