"""The migrations make exactly the tables that the code speaks of, and a database of another version is not
touched."""

import sqlite3
import tokenize
from hashlib import sha256
from io import BytesIO
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import MetaData, insert, inspect, select, text

from postern.core.history.invocation import StoreUnavailable
from postern.settings import Settings
from postern.stores.sql import schema
from postern.stores.sql.database import Database
from postern.stores.sql.tables import for_migrations, metadata
from postern.wiring.engines import make_engine
from support.first_version import unpack_database


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


def test_the_newest_schema_is_reported_without_alembic_as_alembic_tells_it() -> None:
    config = Config()
    config.set_main_option("script_location", str(schema.MIGRATIONS))
    assert schema.newest() == ScriptDirectory.from_config(config).get_current_head()


def test_an_sqlite_that_was_never_tried_is_refused_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version", "3.38.5")
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 38, 5))
    with pytest.raises(
        StoreUnavailable, match=r"SQLite 3\.39 or newer is needed, and this Python has 3\.38\.5"
    ):
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


def test_a_database_of_a_newer_version_is_left_alone(empty: Database) -> None:
    schema.migrate(empty)
    with empty.writer.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    schema.migrate(empty)
    with pytest.raises(schema.SchemaMismatch, match="9999"):
        schema.verify(empty)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ("DROP TABLE quarters", "table quarters is missing"),
        ("ALTER TABLE deliveries DROP COLUMN answer_code", "column deliveries.answer_code is missing"),
        ("DROP INDEX deliveries_due", "index deliveries_due is missing"),
    ],
)
def test_tables_that_are_not_what_the_number_says_are_named(empty: Database, change: str, named: str) -> None:
    schema.migrate(empty)
    schema.verify(empty)
    with empty.writer.begin() as connection:
        connection.execute(text(change))
    with pytest.raises(schema.SchemaMismatch, match=named):
        schema.verify(empty)


def test_what_somebody_has_added_is_left_alone(empty: Database) -> None:
    schema.migrate(empty)
    with empty.writer.begin() as connection:
        connection.execute(text("CREATE TABLE theirs (id int)"))
        connection.execute(text("CREATE INDEX theirs_of_calls ON invocations (address)"))
    schema.verify(empty)


def test_tables_that_the_user_may_not_read_are_as_good_as_missing(postgres_url: str) -> None:
    database = Database(postgres_url)
    schema.migrate(database)
    with database.readers.connect() as connection:
        connection.exec_driver_sql(
            "SET ROLE pg_monitor"
        )  # a role that every server has, with no rights on tables
        assert schema.differences(connection) == [f"table {name} is missing" for name in metadata.tables]
    database.close()


def test_the_migrations_run_on_a_database_with_something_in_it(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{unpack_database(tmp_path)}")
    assert database.read_now(schema.revision) == "0001"
    rows = "SELECT count(*) FROM invocations"
    before = database.read_now(lambda connection: connection.scalar(text(rows)))
    schema.migrate(database)
    schema.verify(database)
    assert database.read_now(lambda connection: connection.scalar(text(rows))) == before > 0
    database.close()


def test_who_began_an_earlier_replay_is_read_in_the_record_of_changes(empty: Database) -> None:
    config = Config()
    config.set_main_option("script_location", str(schema.MIGRATIONS))
    config.attributes["engine"] = empty.writer
    command.upgrade(config, "0005")
    with empty.writer.begin() as connection:
        for number, (replay, actor, action) in enumerate(
            [("rpl_1", "ada", "planned"), ("rpl_1", "bob", "begun"), ("rpl_2", "ada", "planned")]
        ):
            note = f"('aud_{number}', 1, '{actor}', 'write', 'replay {action}', '{replay}', :nothing)"
            connection.execute(text(f"INSERT INTO audit VALUES {note}"), {"nothing": b"{}"})
        for replay in ("rpl_1", "rpl_2"):
            connection.execute(
                text(
                    "INSERT INTO replays (id, state, wanted, total, done, skipped, position, next_at, created_at,"
                    " created_by) VALUES (:id, 'running', :nothing, 1, 0, 0, '', 0, 1, 'ada')"
                ),
                {"id": replay, "nothing": b"{}"},
            )
    schema.migrate(empty)
    with empty.readers.connect() as connection:
        rows = connection.execute(text("SELECT id, started_by FROM replays ORDER BY id")).all()
    assert [tuple(row) for row in rows] == [("rpl_1", "bob"), ("rpl_2", None)]


def test_the_migrations_run_on_postgres_with_something_in_it(tmp_path: Path, postgres_url: str) -> None:
    """Nobody runs the first version on Postgres any more; its tables are made by its migration and filled with
    what it left behind on SQLite."""
    config = Config()
    config.set_main_option("script_location", str(schema.MIGRATIONS))
    target, source = Database(postgres_url), Database(f"sqlite:///{unpack_database(tmp_path)}")
    config.attributes["engine"] = target.writer
    command.upgrade(config, "0001")
    with source.readers.connect() as reading, target.writer.begin() as writing:
        there = MetaData()
        there.reflect(reading)
        for table in there.sorted_tables:
            if table.name == "alembic_version":
                continue
            rows = [dict(row._mapping) for row in reading.execute(select(table))]
            writing.execute(table.delete())
            if rows:
                writing.execute(insert(table), rows)
    with pytest.raises(schema.SchemaMismatch, match="this version needs"):
        schema.verify(target)
    schema.migrate(target)
    schema.verify(target)
    source.close()
    target.close()


# The tokens of each migration, without its layout: what is out there was made by exactly these.
FROZEN = {
    "0001": "8660aa6d074dff84",
    "0002": "4680f87832c52381",
    "0003": "14075856b7e9964c",
    "0004": "12a955d0e976f622",
    "0005": "ea8067cffca3f6cb",
    "0006": "b45fa1bd9568d248",
    "0007": "32e37d1fbfc84e91",
    "0008": "8a7ade9276ca468b",
    "0009": "cda9d0a6907404e0",
}


def tokens_of(source: bytes) -> list[str]:
    """As Python 3.11 reads them: an f-string is one token. From 3.12 on it is several."""
    layout = {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.COMMENT}
    begins, ends = (getattr(tokenize, f"FSTRING_{edge}", None) for edge in ("START", "END"))
    lines = source.decode().splitlines(keepends=True)
    found: list[str] = []
    open_at: list[tuple[int, int]] = []
    for one in tokenize.tokenize(BytesIO(source).readline):
        if one.type == begins:
            open_at.append(one.start)
        elif one.type == ends:
            (first, left), (last, right) = open_at.pop(), one.end
            assert first == last, "an f-string of several lines"
            if not open_at:
                found.append(lines[first - 1][left:right])
        elif not open_at and one.type not in layout:
            found.append(one.string)
    return found


@pytest.mark.parametrize("revision", FROZEN)
def test_a_migration_is_never_edited(revision: str) -> None:
    """Write the next one instead. Databases that have run this one would never be told of the change."""
    (file,) = (schema.MIGRATIONS / "versions").glob(f"{revision}_*.py")
    tokens = tokens_of(file.read_bytes())
    digest = sha256("\0".join(token for token in tokens if token != ",").encode()).hexdigest()[:16]
    assert digest == FROZEN[revision]


def test_every_migration_is_frozen() -> None:
    assert list(FROZEN) == list(schema._known())
