"""Which log belongs to which file of SQLite. With the real program: ``test_readiness.py``."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from postern.left_log import note_log, put_left_log_aside


class Program:
    """A database that is opened by one program after the other. Each is killed, so that its log stays."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.database, self.log, self.lock = (folder / name for name in ("x.db", "x.db-wal", "x.db.lock"))
        self.lock.touch()
        self.open: list[sqlite3.Connection] = []

    def start(self) -> str | None:
        kept = put_left_log_aside(self.database, self.lock)
        connection = sqlite3.connect(self.database, isolation_level=None)
        self.open.append(connection)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE IF NOT EXISTS t (a)")
        note_log(connection, self.database, self.lock)
        connection.execute("INSERT INTO t VALUES (1)")
        return kept

    def copy(self, to: Path) -> Path:
        with closing(sqlite3.connect(to)) as copied:
            self.open[-1].backup(copied)
        return to


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    program = Program(tmp_path / "one")
    assert program.start() is None
    yield program
    for connection in program.open:
        connection.close()


@pytest.mark.parametrize("removed", [False, True])
def test_a_copy_of_an_earlier_start_does_not_get_the_log(program: Program, removed: bool) -> None:
    earlier = program.copy(program.database.with_name("copy"))
    assert program.start() is None
    if removed:
        program.database.unlink()
    shutil.copyfile(earlier, program.database)
    assert put_left_log_aside(program.database, program.lock) == "x.db-wal.left"
    assert not program.log.exists()


def test_a_file_and_its_log_that_come_together_stay_together(program: Program, tmp_path: Path) -> None:
    other = Program(tmp_path / "other")
    assert other.start() is None
    for whence, where in (other.database, program.database), (other.log, program.log):
        shutil.copyfile(whence, where)
    assert put_left_log_aside(program.database, program.lock) is None
    other.open[0].close()


def test_a_log_is_kept_where_somebody_reads_an_earlier_state(program: Program) -> None:
    """The marks of later starts are in the log alone meanwhile."""
    readers = [sqlite3.connect(program.database, isolation_level=None) for _ in range(2)]
    for reader in readers:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM t").fetchall()
        assert program.start() is None
    for reader in readers:
        assert put_left_log_aside(program.database, program.lock) is None
        reader.close()
        program.open[-1].execute("PRAGMA wal_checkpoint(PASSIVE)").close()
    assert put_left_log_aside(program.database, program.lock) is None


def test_a_lock_that_says_nothing_takes_no_log_away(program: Program) -> None:
    for said in ("", "1:2", "a b c d", "1:2 3:4 x 5", "\x00" * 40):
        program.lock.write_text(said)
        assert put_left_log_aside(program.database, program.lock) is None
        note_log(program.open[0], program.database, program.lock)
        assert len(program.lock.read_text().split()) == 4
