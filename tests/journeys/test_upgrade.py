"""`postern migrate`, and a program whose database is of another version."""

from pathlib import Path

import pytest

from postern.stores.sql import schema
from support.fresh import fresh_data
from support.program import run_postern
from support.stored import rows


def test_migrate_once_and_again(tmp_path: Path) -> None:
    for _ in range(2):
        done = run_postern(tmp_path, "migrate")
        assert (done.returncode, done.stdout) == (0, f"The schema is {schema.newest()}.\n"), done.stderr
    database = tmp_path / "data" / "postern.db"
    assert rows(database, "SELECT version_num FROM alembic_version") == [(schema.newest(),)]


@pytest.mark.parametrize(
    ("found", "advice"), [("9999", "use the newer version that made it"), ("0001", "`postern export`")]
)
def test_a_program_does_not_open_the_database_of_another_version(
    tmp_path: Path, found: str, advice: str
) -> None:
    fresh_data(tmp_path / "data")
    rows(tmp_path / "data" / "postern.db", "UPDATE alembic_version SET version_num = ?", found)
    (tmp_path / "data" / "secret.key").unlink()
    for command in (["serve"], ["webhooks", "list"], ["migrate"]):
        refused = run_postern(tmp_path, *command)
        assert refused.returncode != 0
        assert advice in refused.stderr
        assert not (tmp_path / "data" / "secret.key").exists(), (
            "no key is made for a database that is refused"
        )
