"""The test beds themselves: what the other tests stand on must not be softer than it looks."""

import os
import subprocess
from pathlib import Path

import psycopg
import pytest

from beds.postgres import PostgresServer, find_binaries, running, within_reach
from beds.waiting import wait_until


def test_waiting_gives_up_with_words_that_help() -> None:
    with pytest.raises(AssertionError, match=r"waited 0 s for the moon; its last answer was \[\]"):
        wait_until(list, 0, what="the moon")
    with pytest.raises(AssertionError, match="it last raised ZeroDivisionError"):
        wait_until(lambda: 1 / 0, 0)


def test_waiting_returns_what_came() -> None:
    answers = iter([None, 0, "here"])
    assert wait_until(lambda: next(answers)) == "here"


def test_each_database_is_new_and_a_template_is_copied(postgres: PostgresServer, postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE things AS SELECT 7 AS number")
    with postgres.database(template=postgres_url) as copied, psycopg.connect(copied) as connection:
        assert connection.execute("SELECT number FROM things").fetchone() == (7,)
    with postgres.database() as empty, psycopg.connect(empty) as connection:
        assert connection.execute("SELECT to_regclass('things')").fetchone() == (None,)


def test_a_server_ends_with_its_test() -> None:
    binaries = find_binaries()
    assert binaries is not None
    with running(binaries) as url, psycopg.connect(url) as connection:
        row = connection.execute("SHOW data_directory").fetchone()
    assert row is not None
    assert not Path(row[0]).exists()
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(url, connect_timeout=2)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs Postgres as somebody else")
def test_binaries_in_a_closed_folder_are_copied_and_the_folder_stays_closed(tmp_path: Path) -> None:
    closed, home = tmp_path / "closed", tmp_path / "home"
    (closed / "package" / "install" / "bin").mkdir(parents=True)
    home.mkdir()
    program = closed / "package" / "install" / "bin" / "postgres"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)
    closed.chmod(0o700)
    reachable = within_reach(program.parent, home, {"user": "nobody"})
    assert reachable == home / "package" / "install" / "bin"
    assert (reachable / "postgres").stat().st_mode & 0o777 == 0o755
    assert closed.stat().st_mode & 0o777 == 0o700
    subprocess.run([reachable / "postgres"], check=True)
