"""Many rows at once, the fastest way each database has: inserts of many rows on SQLite, binary COPY on
Postgres.

Both go to the driver itself, as do the few counts of each commit: SQLAlchemy's own handling of a statement
costs more than the database's. Measured on Postgres, rows of history in batches of 100: COPY spends a quarter
of the processor time of `executemany` and half of one INSERT from arrays. `bench/results/` has the numbers.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import chain
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, Dialect, Executable, LargeBinary, Table
from sqlalchemy.exc import DBAPIError

ValueRows = Sequence[Sequence[Any]]

Parameters = dict[str, Any]
"""A statement's parameters by name, or a row by column."""

_BINARY = {
    "big_integer": "int8",
    "integer": "int4",
    "small_integer": "int2",
    "large_binary": "bytea",
    "boolean": "bool",
}


def insert_rows(connection: Connection, table: Table, columns: tuple[str, ...], rows: ValueRows) -> None:
    if connection.dialect.name == "sqlite":
        _insert(connection, table, columns, rows)
    else:
        _copy(connection, table, columns, rows)


def insert_new_rows(connection: Connection, table: Table, columns: tuple[str, ...], rows: ValueRows) -> int:
    """Inserts those whose keys are not there yet, on SQLite, and returns how many."""
    return _insert(connection, table, columns, rows, "INSERT OR IGNORE")


def execute_for_each(connection: Connection, statement: Executable, rows: list[Parameters]) -> list[int]:
    """Executes a statement, compiled once for ever, for a few rows. Returns how many rows of the table each of them
    changed. Parameters are given to the driver as they are, so: numbers, bytes and plain text."""
    text, in_order, constants = _compiled(statement, connection.dialect)
    given = [constants | row for row in rows]
    with in_the_driver(connection, text) as driver:
        if in_order is not None:
            return [driver.execute(text, in_order(values)).rowcount for values in given]
        if not given:
            return []
        with driver.cursor() as cursor:
            cursor.executemany(text, given, returning=True)  # returning: else only their sum is told
            changed = [cursor.rowcount]
            while cursor.nextset():
                changed.append(cursor.rowcount)
            return changed


def fetch(connection: Connection, statement: Executable, parameters: Parameters) -> list[tuple[Any, ...]]:
    """The rows of a query, or of a change that returns some, as the driver gives them."""
    text, in_order, constants = _compiled(statement, connection.dialect)
    given = constants | parameters
    with in_the_driver(connection, text) as driver:
        rows: list[tuple[Any, ...]] = driver.execute(text, in_order(given) if in_order else given).fetchall()
    return rows


def among(connection: Connection, values: list[str]) -> tuple[str, object]:
    """The condition that a column is one of many values, and its one parameter: however many, the text is the same."""
    if connection.dialect.name == "sqlite":
        return "IN (SELECT value FROM json_each(?))", json.dumps(values)
    return "= ANY(%s)", values


@lru_cache(maxsize=64)
def _compiled(
    statement: Any, dialect: Dialect
) -> tuple[str, Callable[[Parameters], tuple[Any, ...]] | None, Parameters]:
    """The text, what puts its parameters in order if the driver needs that, and those that are the same for every row."""
    compiled = statement.compile(dialect=dialect)
    constants = {name: value for name, value in compiled.params.items() if value is not None}
    names = compiled.positiontup
    return str(compiled), None if names is None else _in_order(names), constants


def _in_order(names: Sequence[Any]) -> Callable[[Any], tuple[Any, ...]]:
    if len(names) > 1:
        return itemgetter(*names)
    return lambda row: tuple(row[name] for name in names)  # of a single name `itemgetter` makes no tuple


@contextmanager
def in_the_driver(connection: Connection, statement: str) -> Iterator[Any]:
    """Past SQLAlchemy's back, so what it does for every other statement is done here: say what went wrong in
    its own words, and whether the server is gone."""
    driver = connection.connection.driver_connection
    assert driver is not None
    kind = connection.dialect.loaded_dbapi.Error
    try:
        yield driver
    except kind as error:
        gone = bool(getattr(driver, "closed", False))
        translated = DBAPIError.instance(
            statement, None, error, kind, connection_invalidated=gone, dialect=connection.dialect
        )
        if gone:
            connection.invalidate(error)
        raise translated from error


_ROWS_A_STATEMENT = (64, 32, 16, 8, 4, 2, 1)


def _insert(
    connection: Connection, table: Table, columns: tuple[str, ...], rows: ValueRows, verb: str = "INSERT"
) -> int:
    # Many rows a statement, not executemany: the driver gives up the interpreter lock for every statement,
    # and a busy event loop takes up to a switch interval to give it back.
    columns, rows = _without_empty_columns(table, columns, rows)
    start = inserted = 0
    width = len(columns)
    with in_the_driver(connection, f"INSERT INTO {table.name}") as driver:
        for size in _ROWS_A_STATEMENT:
            while len(rows) - start >= size:
                values = list(chain.from_iterable(rows[start : start + size]))
                for place in _binary_places(table, columns):
                    # The driver looks for an adapter of each bytes and finds none: seven times what a bytearray costs.
                    values[place::width] = [
                        value if value is None else bytearray(value) for value in values[place::width]
                    ]
                inserted += driver.execute(
                    f"{verb} {_insert_statement(table, columns, size)}", values
                ).rowcount
                start += size
    return inserted


def _without_empty_columns(
    table: Table, columns: tuple[str, ...], rows: ValueRows
) -> tuple[tuple[str, ...], ValueRows]:
    """Leaves out the columns that are empty in every row: the driver looks for an adapter of each None, too."""
    empty = [place for place in _nullable_places(table, columns) if all(row[place] is None for row in rows)]
    if not empty:
        return columns, rows
    kept = _in_order([place for place in range(len(columns)) if place not in empty])
    return kept(columns), list(map(kept, rows))


@lru_cache(maxsize=64)
def _nullable_places(table: Table, columns: tuple[str, ...]) -> list[int]:
    """The columns that are NULL where a row does not name them."""
    return [
        place
        for place, key in enumerate(columns)
        if table.c[key].nullable and table.c[key].server_default is None
    ]


@lru_cache(maxsize=64)
def _insert_statement(table: Table, columns: tuple[str, ...], rows: int) -> str:
    row = f"({', '.join('?' * len(columns))})"
    return f"INTO {table.name} ({_names(table, columns)}) VALUES {', '.join([row] * rows)}"


@lru_cache(maxsize=64)
def _binary_places(table: Table, columns: tuple[str, ...]) -> list[int]:
    return [place for place, key in enumerate(columns) if isinstance(table.c[key].type, LargeBinary)]


def _names(table: Table, columns: tuple[str, ...]) -> str:
    return ", ".join(f'"{table.c[key].name}"' for key in columns)


def _copy(connection: Connection, table: Table, columns: tuple[str, ...], rows: ValueRows) -> None:
    statement, types = _copy_statement(table, columns)
    with (
        in_the_driver(connection, statement) as driver,
        driver.cursor() as cursor,
        cursor.copy(statement) as copy,
    ):
        copy.set_types(types)
        for row in rows:
            copy.write_row(row)


@lru_cache(maxsize=64)
def _copy_statement(table: Table, columns: tuple[str, ...]) -> tuple[str, list[str]]:
    return f"COPY {table.name} ({_names(table, columns)}) FROM STDIN (FORMAT BINARY)", [
        _BINARY.get(table.c[name].type.__visit_name__, "text") for name in columns
    ]
