"""From the first version to this one, and back: what was backed up before comes back as it was."""

import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

from journeys.test_backup import rows
from postern.stores.sql import schema
from support.first_version import expected, unpack_database
from support.program import StartProgram, run_postern

KEYS = {"POSTERN_SECRET_KEYS": expected()["secretKey"]}
FIRST = "0001"


def everything(database: Path) -> dict[str, list[tuple[object, ...]]]:
    names = rows(database, "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
    return {str(name): rows(database, f'SELECT * FROM "{name}"') for (name,) in names}


def backed_up(folder: Path, file: str) -> subprocess.CompletedProcess[str]:
    return run_postern(folder, "backup", file, **KEYS)


def test_an_upgrade_and_the_way_back(tmp_path: Path, start_program: StartProgram) -> None:
    database = unpack_database(tmp_path / "data")
    then = everything(database)
    assert then["alembic_version"] == [(FIRST,)]
    assert backed_up(tmp_path, "before").returncode == 0
    assert everything(database) == then, "a backup has changed what it backed up"

    program = start_program(**KEYS, POSTERN_ENGINE="none")
    program.stop()
    now = everything(database)
    assert now["alembic_version"] == [(schema.newest(),)] != then["alembic_version"]

    back = run_postern(tmp_path, "restore", "before", "--replace", **KEYS)
    assert back.returncode == 0, back.stderr
    assert everything(database) == then
    (aside,) = (tmp_path / "data").glob("postern.db.before-*[!lm]")
    assert everything(aside) == now, "what the newer version has recorded is lost"


def test_migrate_once_and_again(tmp_path: Path) -> None:
    database = unpack_database(tmp_path / "data")
    for _ in range(2):
        done = run_postern(tmp_path, "migrate", **KEYS)
        assert (done.returncode, done.stdout) == (0, f"The schema is {schema.newest()}.\n"), done.stderr
    assert rows(database, "SELECT version_num FROM alembic_version") == [(schema.newest(),)]


def test_an_older_program_does_not_open_what_a_newer_one_has_brought_up_to_date(tmp_path: Path) -> None:
    database = unpack_database(tmp_path / "data")
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    for command in (["serve"], ["webhooks", "list"]):
        refused = run_postern(tmp_path, *command, **KEYS)
        assert refused.returncode != 0
        assert "run the newer version that made it" in refused.stderr
