"""The migrations make exactly the tables that the code speaks of, and a database of another version is not
touched."""

import sqlite3
from pathlib import Path
from shutil import copytree

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, text

from postern.core.history.invocation import StoreUnavailable
from postern.settings import Settings
from postern.stores.sql import schema
from postern.stores.sql.database import Database
from postern.stores.sql.tables import for_migrations, metadata
from postern.wiring.engines import make_engine


@pytest.fixture(params=["sqlite", "postgres"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Database:
    server = request.param == "postgres"
    url = request.getfixturevalue("postgres_url") if server else f"sqlite:///{tmp_path / 'postern.db'}"
    database = Database(str(url))
    request.addfinalizer(database.close)
    return database


def change(database: Database, statement: str) -> None:
    with database.writer.begin() as connection:
        connection.execute(text(statement))


def test_the_migrations_lead_to_the_tables(empty: Database) -> None:
    schema.migrate(empty)
    with empty.readers.connect() as connection:
        # SQLite tells defaults in other words than it was given them.
        options = {"compare_type": True, "compare_server_default": not empty.is_sqlite}
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, for_migrations()) == []
        found = inspect(connection)
        made = [index for table in metadata.tables for index in found.get_indexes(table)]
    where = f"{connection.dialect.name}_where"
    partial = {index["name"] for index in made if index.get("dialect_options", {}).get(where) is not None}
    indexes = [index for table in metadata.tables.values() for index in table.indexes]
    assert partial == {index.name for index in indexes if "where" in index.info}


def test_the_newest_schema_is_reported_without_alembic_as_alembic_tells_it() -> None:
    config = Config()
    config.set_main_option("script_location", str(schema.MIGRATIONS))
    assert schema.newest() == ScriptDirectory.from_config(config).get_current_head()


def test_an_sqlite_that_was_never_tried_is_refused_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version", "3.38.5")
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 38, 5))
    needed = r"SQLite 3\.39 or newer is needed, and this Python has 3\.38\.5"
    with pytest.raises(StoreUnavailable, match=needed):
        Database(f"sqlite:///{tmp_path / 'postern.db'}")
    assert not list(tmp_path.iterdir())
    # With Postgres too, where the embedded engine keeps its runs in SQLite.
    with pytest.raises(StoreUnavailable, match="is needed"):
        make_engine(Settings({"POSTERN_DATA_DIR": str(tmp_path), "POSTERN_ENGINE": "embedded"}))
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 39, 0))
    Database(f"sqlite:///{tmp_path / 'postern.db'}").close()


def test_migrating_twice_changes_nothing(empty: Database) -> None:
    schema.migrate(empty)
    schema.migrate(empty)
    schema.verify(empty)


def test_a_database_without_a_schema_is_answered_with_what_to_do(empty: Database) -> None:
    with pytest.raises(schema.SchemaMismatch, match="postern migrate"):
        schema.verify(empty)


@pytest.mark.parametrize(
    ("found", "advice"),
    [("0009", r"postern export.* with this one .`postern apply`"), ("9999", "use the newer version")],
)
def test_a_database_of_another_version_is_left_alone(empty: Database, found: str, advice: str) -> None:
    schema.migrate(empty)
    change(empty, f"UPDATE alembic_version SET version_num = '{found}'")
    schema.migrate(empty)
    with pytest.raises(schema.SchemaMismatch, match=f"{found}.*{advice}"):
        schema.verify(empty)
    assert empty.read_now(schema.revision) == found


def test_a_later_migration_runs_on_what_is_there(
    empty: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema.migrate(empty)
    change(empty, "INSERT INTO meta VALUES ('kept', 'yes')")
    later = copytree(schema.MIGRATIONS, tmp_path / "migrations") / "versions" / "9000_a_column.py"
    later.write_text(
        """
import sqlalchemy as sa
from alembic import op

revision, down_revision = "9000", schema_before

def upgrade():
    op.add_column("meta", sa.Column("note", sa.Text()))
""".replace("schema_before", repr(schema.newest()))
    )
    monkeypatch.setattr(schema, "MIGRATIONS", tmp_path / "migrations")
    monkeypatch.setattr(schema, "_known", schema._known.__wrapped__)
    with pytest.raises(schema.SchemaMismatch, match=r"needs 9000\): run `postern migrate`"):
        schema.verify(empty)
    schema.migrate(empty)
    schema.verify(empty)
    asked = text("SELECT name, value, note FROM meta")
    rows = empty.read_now(lambda connection: connection.execute(asked).all())
    assert [tuple(row) for row in rows] == [("kept", "yes", None)]


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        ("DROP TABLE volume_rollups", "table volume_rollups is missing"),
        ("ALTER TABLE deliveries DROP COLUMN answer_code", "column deliveries.answer_code is missing"),
        ("DROP INDEX deliveries_due", "index deliveries_due is missing"),
    ],
)
def test_tables_that_are_not_what_the_number_says_are_named(
    empty: Database, statement: str, named: str
) -> None:
    schema.migrate(empty)
    schema.verify(empty)
    change(empty, statement)
    with pytest.raises(schema.SchemaMismatch, match=named):
        schema.verify(empty)


def test_what_somebody_has_added_is_left_alone(empty: Database) -> None:
    schema.migrate(empty)
    change(empty, "CREATE TABLE theirs (id int)")
    change(empty, "CREATE INDEX theirs_of_calls ON invocations (address)")
    schema.verify(empty)


@pytest.mark.parametrize("empty", ["postgres"], indirect=True)
def test_a_column_that_may_be_empty_and_must_not_is_named(empty: Database) -> None:
    schema.migrate(empty)
    change(empty, "ALTER TABLE users ALTER COLUMN password_hash DROP NOT NULL")
    with pytest.raises(schema.SchemaMismatch, match=r"column users\.password_hash need not have a value"):
        schema.verify(empty)


@pytest.mark.parametrize("empty", ["postgres"], indirect=True)
def test_tables_that_the_user_may_not_read_are_as_good_as_missing(empty: Database) -> None:
    schema.migrate(empty)
    with empty.readers.connect() as connection:
        # A role that every server has, with no rights on tables.
        connection.exec_driver_sql("SET ROLE pg_monitor")
        assert schema.differences(connection) == [f"table {name} is missing" for name in metadata.tables]
