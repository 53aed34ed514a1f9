"""Rows on their way into SQLite."""

import sqlite3
from collections.abc import Iterator

import pytest
from sqlalchemy import (
    Column,
    Connection,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    bindparam,
    create_engine,
    delete,
)
from sqlalchemy.pool import StaticPool

from postern.stores.sql.bulk import changed_by_each, execute_for_each, insert_rows

THINGS = Table("things", MetaData(), Column("id", Integer, primary_key=True), Column("content", LargeBinary))


@pytest.fixture
def connection() -> Iterator[Connection]:
    engine = create_engine("sqlite://", poolclass=StaticPool)
    THINGS.metadata.create_all(engine)
    with engine.connect() as connection:
        yield connection
    engine.dispose()


@pytest.mark.parametrize(("rows", "statements"), [(0, 0), (1, 1), (7, 3), (64, 1), (100, 3), (130, 3)])
def test_rows_of_any_number_go_in_with_few_statements(
    connection: Connection, rows: int, statements: int
) -> None:
    given = [(number, b"%d" % number) for number in range(rows)]
    driver = connection.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    sent: list[str] = []
    driver.set_trace_callback(sent.append)
    insert_rows(connection, THINGS, ("id", "content"), given)
    driver.set_trace_callback(None)
    assert len([one for one in sent if one.startswith("INSERT")]) == statements
    assert driver.execute("SELECT id, content FROM things ORDER BY id").fetchall() == given


def test_a_statement_may_have_one_parameter_or_none(connection: Connection) -> None:
    insert_rows(connection, THINGS, ("id", "content"), [(number, b"") for number in range(1, 13)])
    one = delete(THINGS).where(THINGS.c.id == bindparam("of"))
    execute_for_each(connection, one, [{"of": 12}, {"of": 3}])
    assert changed_by_each(connection, one, [{"of": 1}, {"of": 1}]) == [1, 0]
    assert changed_by_each(connection, delete(THINGS), [{}]) == [9]
