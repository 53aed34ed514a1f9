"""One gateway at a time serves an SQLite database, and one with the embedded engine a Postgres database: whatever
folders they are given, and after the database server was started again."""

import signal
from pathlib import Path

import psycopg
import pytest

from postern.stores.sql import schema
from postern.stores.sql.database import Database
from postern.stores.sql.wake import AloneLock
from support.postgres import PostgresProcess
from support.program import StartProgram, run_postern
from support.waiting import PATIENCE, free_port, wait_until


@pytest.mark.parametrize("way", ["the same path", "a link to the folder"])
def test_a_second_gateway_on_one_database_is_refused(
    tmp_path: Path, start_program: StartProgram, way: str
) -> None:
    first = start_program(POSTERN_ENGINE="none", POSTERN_DATA_DIR=str(tmp_path / "one"))
    folder = first.data_dir
    if way == "a link to the folder":
        folder = tmp_path / "link"
        folder.symlink_to(first.data_dir)
    refused = run_postern(
        tmp_path,
        "serve",
        POSTERN_ENGINE="none",
        POSTERN_PORT=str(free_port()),
        POSTERN_DATA_DIR=str(tmp_path / "two"),
        POSTERN_DATABASE_URL=f"sqlite:///{folder / 'postern.db'}",
    )
    assert refused.returncode == 1
    assert f"Another Postern already serves {first.data_dir / 'postern.db'}" in refused.stderr


def test_a_gateway_whose_place_was_taken_ends(
    own_postgres: PostgresProcess, start_program: StartProgram
) -> None:
    database = Database(own_postgres.url)
    schema.migrate(database)
    database.close()
    program = start_program(POSTERN_DATABASE_URL=own_postgres.url)
    program.process.send_signal(signal.SIGSTOP)
    own_postgres.stop()
    own_postgres.start()
    other = AloneLock(database.url)
    wait_until(lambda: _taken(other), what="the lock to be free")
    program.process.send_signal(signal.SIGCONT)
    program.process.wait(PATIENCE)
    assert "another Postern with the embedded engine serves this database now" in program.output()
    other.release()


def _taken(lock: AloneLock) -> bool:
    try:
        return lock.take()
    except psycopg.OperationalError:
        return False
