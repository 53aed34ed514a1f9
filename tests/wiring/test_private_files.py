"""What callers sent is read by the gateway's own user alone, whatever the umask says."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from postern.stores.sql import schema
from postern.stores.sql.database import Database
from support.client import PASSWORD, Client, admin_of
from support.program import Program, StartProgram, run_postern

KEPT = {"postern.db", "postern.db-wal", "postern.db-shm", "secret.key"}
LOCKS = {"serving.lock", "postern.db.lock"}


@pytest.fixture
def open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def open_to_others(folder: Path) -> dict[str, str]:
    paths = [folder, *folder.iterdir()]
    return {path.name: oct(path.stat().st_mode) for path in paths if path.stat().st_mode & 0o077}


def test_what_is_made_and_what_was_left_open_is_closed_to_others(
    start_program: StartProgram, tmp_path: Path, open_umask: None
) -> None:
    folder = tmp_path / "deep" / "data"
    environment = {"POSTERN_DATA_DIR": str(folder), "POSTERN_ADMIN_PASSWORD": PASSWORD}
    program = start_program(POSTERN_WORKFLOWS=str(tmp_path / "workflows"), **environment)
    called(program)
    assert {path.name for path in folder.iterdir()} >= KEPT | LOCKS and open_to_others(folder) == {}
    program.kill()

    for path in (folder, *folder.iterdir()):
        path.chmod(0o777 if path.is_dir() else 0o666)
    for name in ("secret.key", "engine.db"):  # never were open
        if (folder / name).exists():
            (folder / name).chmod(0o600)
    listed = run_postern(tmp_path, "webhooks", "list", **environment)
    assert listed.returncode == 0, listed.stderr
    assert not open_to_others(folder).keys() & {folder.name, *KEPT, "engine.db"}, (
        "the rest is of whoever serves"
    )


def called(program: Program) -> None:
    made = admin_of(program).post("webhooks", {"name": "Orders", "authentication": {"method": "none"}}).json
    assert Client(program.port).post("/webhook/" + made["url"].rpartition("/")[2], {"a": 1}).status == 200


def test_a_second_look_at_the_database_leaves_the_locks_on_it(tmp_path: Path) -> None:
    """To open and close the file beside SQLite would take them away: another process would then delete the log."""
    url = f"sqlite:///{tmp_path / 'postern.db'}"
    first = Database(url)
    schema.migrate(first)
    with first.readers.connect() as reading:
        reading.execute(text("SELECT 1"))
        Database(url).close()
        look = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('SELECT * FROM meta').fetchall(); c.close()"
        subprocess.run([sys.executable, "-c", look, str(tmp_path / "postern.db")], check=True)
        assert (tmp_path / "postern.db-wal").exists()
    first.close()
