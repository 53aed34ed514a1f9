"""The migrations make exactly the tables that the code speaks of, and a database of another version is not
touched."""

from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, text

from postern.stores.sql import schema
from postern.stores.sql.database import Database
from postern.stores.sql.tables import for_migrations, metadata


@pytest.fixture(params=["sqlite", "postgres"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Database:
    url = (
        request.getfixturevalue("postgres_url")
        if request.param == "postgres"
        else f"sqlite:///{tmp_path / 'postern.db'}"
    )
    database = Database(str(url))
    request.addfinalizer(database.close)
    return database


def test_the_migrations_lead_to_the_tables(empty: Database) -> None:
    schema.migrate(empty)
    with empty.readers.connect() as connection:
        # SQLite tells defaults in other words than it was given them.
        options = {"compare_type": True, "compare_server_default": not empty.is_sqlite}
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, for_migrations()) == []
        found = inspect(connection)
        made = [index for table in metadata.tables for index in found.get_indexes(table)]
    partial = {
        index["name"]
        for index in made
        if index.get("dialect_options", {}).get(f"{connection.dialect.name}_where") is not None
    }
    assert partial == {
        index.name for table in metadata.tables.values() for index in table.indexes if "where" in index.info
    }


def test_the_newest_schema_is_told_without_alembic_as_alembic_tells_it() -> None:
    config = Config()
    config.set_main_option("script_location", str(schema.MIGRATIONS))
    assert schema.newest() == ScriptDirectory.from_config(config).get_current_head()


def test_migrating_twice_changes_nothing(empty: Database) -> None:
    schema.migrate(empty)
    schema.migrate(empty)
    schema.verify(empty)


def test_a_database_without_a_schema_is_told_what_to_do(empty: Database) -> None:
    with pytest.raises(schema.SchemaMismatch, match="postern migrate"):
        schema.verify(empty)


def test_a_database_of_a_newer_version_is_left_alone(empty: Database) -> None:
    schema.migrate(empty)
    with empty.writer.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    schema.migrate(empty)
    with pytest.raises(schema.SchemaMismatch, match="9999"):
        schema.verify(empty)
