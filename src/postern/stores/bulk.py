"""Many rows at once, the fastest way each database has: inserts of many rows on SQLite, binary COPY on Postgres.

Measured on Postgres, rows of history in batches of 100: COPY spends a quarter of the processor time of `executemany` and
half of one INSERT from arrays. `docs/decisions/` has the numbers.
"""

from functools import lru_cache
from itertools import chain
from typing import Any

import psycopg
from sqlalchemy import Connection, Dialect, Table, bindparam, insert
from sqlalchemy.exc import DBAPIError

Rows = list[tuple[Any, ...]]

_BINARY = {"big_integer": "int8", "integer": "int4", "small_integer": "int2", "large_binary": "bytea", "boolean": "bool"}


def insert_rows(connection: Connection, table: Table, columns: tuple[str, ...], rows: Rows) -> None:
    if connection.dialect.name == "sqlite":
        # Many rows a statement, not executemany: the driver gives up the interpreter lock for every statement, and a busy
        # event loop takes up to a switch interval to give it back.
        start = 0
        for size in _ROWS_A_STATEMENT:
            while len(rows) - start >= size:
                statement = _insert_many_statement(table, columns, size, connection.dialect)
                connection.exec_driver_sql(statement, tuple(chain.from_iterable(rows[start : start + size])))
                start += size
    else:
        _copy(connection, table, columns, rows)


def _copy(connection: Connection, table: Table, columns: tuple[str, ...], rows: Rows) -> None:
    driver = connection.connection.driver_connection
    assert driver is not None
    statement, types = _copy_statement(table, columns)
    try:
        with driver.cursor() as cursor, cursor.copy(statement) as copy:
            copy.set_types(types)
            for row in rows:
                copy.write_row(row)
    except psycopg.Error as error:
        # Past SQLAlchemy's back, so what it does for every other statement is done here: say whether the server is gone.
        told = DBAPIError.instance(statement, None, error, psycopg.Error, connection_invalidated=driver.closed, dialect=connection.dialect)
        if driver.closed:
            connection.invalidate(error)
        raise told from error


_ROWS_A_STATEMENT = (64, 16, 4, 1)


@lru_cache(maxsize=64)
def _insert_many_statement(table: Table, columns: tuple[str, ...], size: int, dialect: Dialect) -> str:
    head, values, row = _insert_statement(table, columns, dialect).partition("VALUES ")
    return head + values + ", ".join([row] * size)


@lru_cache(maxsize=64)
def _insert_statement(table: Table, columns: tuple[str, ...], dialect: Dialect) -> str:
    return str(insert(table).values({name: bindparam(name) for name in columns}).compile(dialect=dialect, column_keys=list(columns)))


@lru_cache(maxsize=64)
def _copy_statement(table: Table, columns: tuple[str, ...]) -> tuple[str, list[str]]:
    names = ", ".join(f'"{name}"' for name in columns)
    return f"COPY {table.name} ({names}) FROM STDIN (FORMAT BINARY)", [
        _BINARY.get(table.c[name].type.__visit_name__, "text") for name in columns
    ]
