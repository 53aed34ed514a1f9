"""INSERT … ON CONFLICT: both databases know it, and SQLAlchemy says it in each one's own dialect."""

from functools import lru_cache
from typing import Any

from sqlalchemy import Column, Connection, Table
from sqlalchemy.dialects import sqlite

from postern.stores.sql.bulk import Parameters


def insert_into(table: Table, dialect_name: str) -> Any:
    if dialect_name == "sqlite":
        return sqlite.insert(table)
    # Here and not at the top: this dialect and psycopg are a seventh of the program's start-up time, and
    # SQLite needs neither.
    from sqlalchemy.dialects import postgresql

    return postgresql.insert(table)


@lru_cache(maxsize=8)
def insert_missing(table: Table, dialect_name: str) -> Any:
    """Inserts the rows whose keys are not there yet."""
    return insert_into(table, dialect_name).on_conflict_do_nothing()


def insert_first(
    connection: Connection, table: Table, values: Parameters, one_of: Column[Any] | None = None
) -> bool:
    """False where there is one already; ``one_of``: the column that no two may share, where it is not the key."""
    inserting = insert_into(table, connection.dialect.name).values(values)
    made = inserting.on_conflict_do_nothing(index_elements=None if one_of is None else [one_of])
    # Asked for the row: of an insert, Postgres' driver does not say how many it made.
    return connection.execute(made.returning(*table.primary_key)).first() is not None
