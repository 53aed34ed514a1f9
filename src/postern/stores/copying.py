"""Moving everything from one database to another: in small steps, each committed with how far it got, and
checked at the end.

Rows go over as they are, secrets still encrypted. A half-done copy is told from somebody else's data
by a note in the target, which is there from the first step to the last.
"""

from base64 import b64decode
from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import Any

import msgspec
from sqlalchemy import (
    Column,
    Connection,
    MetaData,
    Table,
    Text,
    delete,
    func,
    insert,
    inspect,
    select,
    tuple_,
)

from postern.stores.sql import schema
from postern.stores.sql.bulk import insert_rows
from postern.stores.sql.database import Database
from postern.stores.sql.tables import epochs, meta, metadata

STEP_ROWS = 2_000
STEP_BYTES = 8 * 1024 * 1024

_notes = MetaData()
progress = Table(
    "copying", _notes, Column("name", Text, primary_key=True), Column("state", Text, nullable=False)
)

COPIED_FROM = "copied from"

OnProgress = Callable[[str, int, int], None]
"""Called with a table's name, its rows so far, and how many there are."""


class CannotCopy(Exception):
    """Nothing was changed, or the copy can be continued; the message says which and what to do."""


class Sum(msgspec.Struct, frozen=True):
    """The contents of a table as a number of rows and a checksum, in whatever order they are read."""

    rows: int
    checksum: str


def copy_all(source: Database, target: Database, on_progress: OnProgress) -> dict[str, Sum]:
    """Copies all tables and returns their sums by table. Raises ``CannotCopy``."""
    schema.verify(source)
    _prepare(source, target)
    sums = {}
    # One view of the source from the first row to the last, and to the comparison.
    with source.readers.connect() as reading:
        if not source.is_sqlite:
            reading = reading.execution_options(isolation_level="REPEATABLE READ")
        for table in metadata.sorted_tables:
            _copy_table(reading, target, table, on_progress)
        for table in metadata.sorted_tables:
            sums[table.name] = _compared(reading, target, table)
    with target.writer.begin() as writing:
        progress.drop(writing)
        writing.execute(delete(meta).where(meta.c.name == COPIED_FROM))
        writing.execute(insert(meta).values(name=COPIED_FROM, value=_origin(source)))
    return sums


def finished(source: Database, target: Database) -> bool:
    """Whether this source was copied into that target already: whoever was cut off at the very end asks again."""

    def asked(connection: Connection) -> bool:
        present = set(inspect(connection).get_table_names())
        if "meta" not in present or progress.name in present:
            return False
        origin = connection.scalar(select(meta.c.value).where(meta.c.name == COPIED_FROM))
        return origin == _origin(source)

    return target.read_now(asked)


def _origin(source: Database) -> str:
    return msgspec.json.encode({"from": source.url.render_as_string(hide_password=True)}).decode()


def _prepare(source: Database, target: Database) -> None:
    with target.writer.connect() as connection:
        present = set(inspect(connection).get_table_names())
    if present and "copying" not in present:
        if "alembic_version" not in present:
            raise CannotCopy("the target holds tables that are not Postern's: give it a database of its own")
        schema.verify(target)
        with target.writer.connect() as connection:
            full = [
                table.name
                for table in metadata.sorted_tables
                if table is not epochs and _count(connection, table)
            ]
        if full:
            raise CannotCopy(f"the target is not empty ({', '.join(full[:3])}): nothing was copied")
    if "alembic_version" not in present:
        schema.migrate(target)
    schema.verify(target)
    origin = _origin(source)
    with target.writer.begin() as connection:
        _notes.create_all(connection)
        begun = connection.scalar(select(progress.c.state).where(progress.c.name == ""))
        if begun is None:
            connection.execute(delete(epochs))  # the one row that the migration has put in
            connection.execute(insert(progress).values(name="", state=origin))
        elif begun != origin:
            raise CannotCopy(
                f"another copy was begun into this target, {begun}: go on with that one, or empty the target"
            )


def _copy_table(reading: Connection, target: Database, table: Table, on_progress: OnProgress) -> None:
    total = _count(reading, table)
    columns = tuple(column.key for column in table.columns)
    done, after = _reached(target, table)
    on_progress(table.name, done, total)
    for rows in _steps(reading, table, after):
        done += len(rows)
        last = rows[-1]
        after = [last[columns.index(column.key)] for column in table.primary_key.columns]
        with target.writer.begin() as writing:
            insert_rows(writing, table, columns, rows)
            # With the rows in one transaction: however this ends, the next attempt knows where to go on.
            writing.execute(delete(progress).where(progress.c.name == table.name))
            writing.execute(
                insert(progress).values(name=table.name, state=msgspec.json.encode([done, after]).decode())
            )
        on_progress(table.name, done, total)


def _reached(target: Database, table: Table) -> tuple[int, list[Any] | None]:
    with target.writer.connect() as connection:
        state = connection.scalar(select(progress.c.state).where(progress.c.name == table.name))
    if state is None:
        return 0, None
    done, after = msgspec.json.decode(state)
    kinds = [column.type.python_type for column in table.primary_key.columns]
    return done, [
        b64decode(value) if kind is bytes else value for kind, value in zip(kinds, after, strict=True)
    ]


def _steps(reading: Connection, table: Table, after: list[Any] | None) -> Iterator[list[tuple[Any, ...]]]:
    """Yields rows in the order of the primary key, in steps that are bounded in rows and in bytes."""
    key = tuple_(*table.primary_key.columns)
    statement = select(table).order_by(*table.primary_key.columns)
    if after is not None:
        statement = statement.where(key > tuple_(*after))
    rows: list[tuple[Any, ...]] = []
    size = 0
    with reading.execution_options(yield_per=200).execute(statement) as result:
        for row in result:
            rows.append(tuple(row))
            size += sum(len(value) for value in row if isinstance(value, bytes | str))
            if len(rows) >= STEP_ROWS or size >= STEP_BYTES:
                yield rows
                rows, size = [], 0
    if rows:
        yield rows


def _compared(reading: Connection, target: Database, table: Table) -> Sum:
    here = summed(reading, table)
    with target.readers.connect() as other:
        there = summed(other, table)
    if here != there:
        raise CannotCopy(
            f"{table.name} differs: {here.rows} rows here, {there.rows} in the target. "
            "Something wrote to one of them meanwhile: empty the target, stop every gateway, and copy again"
        )
    return here


def summed(connection: Connection, table: Table) -> Sum:
    rows, total = 0, 0
    with connection.execution_options(yield_per=200).execute(select(table)) as result:
        for row in result:
            rows += 1
            total += int.from_bytes(sha256(msgspec.msgpack.encode(tuple(row))).digest()[:16], "big")
    return Sum(rows, f"{total % 2**128:032x}")


def _count(connection: Connection, table: Table) -> int:
    return connection.scalar(select(func.count()).select_from(table)) or 0
