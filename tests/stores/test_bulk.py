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
from sqlalchemy.engine import make_url
from sqlalchemy.pool import StaticPool

from postern.stores.sql.bulk import execute_for_each, insert_rows

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


@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_a_statement_for_each_row_tells_what_each_changed(
    request: pytest.FixtureRequest, database: str
) -> None:
    if database == "sqlite":
        engine = create_engine("sqlite://", poolclass=StaticPool)
    else:
        url = make_url(request.getfixturevalue("postgres_url"))
        engine = create_engine(url.set(drivername="postgresql+psycopg"))
    with engine.connect() as connection:
        THINGS.metadata.create_all(connection)
        insert_rows(connection, THINGS, ("id", "content"), [(number, b"") for number in range(1, 13)])
        one = delete(THINGS).where(THINGS.c.id == bindparam("of"))
        assert execute_for_each(connection, one, [{"of": 1}, {"of": 1}, {"of": 12}]) == [1, 0, 1]
        assert execute_for_each(connection, one, []) == []
        assert execute_for_each(connection, delete(THINGS), [{}]) == [10]
    engine.dispose()
