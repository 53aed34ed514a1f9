"""Files that hold what callers sent are readable by the gateway's own user alone, whatever the umask says."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from sqlalchemy import text

from postern.private_files import Openness, openness
from postern.settings import Settings
from postern.stores.sql import schema
from postern.stores.sql.database import Database
from postern.surfaces.cli.gateway.source import HttpQuestion
from postern.wiring import gateway
from postern.wiring.program import LocalApi, check_owner
from postern.wiring.starting import CannotStart
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
    workflows, said = tmp_path / "workflows", "everybody may write into the workflow folder"
    assert open_to_others(folder.parent) == open_to_others(workflows) == {} and said not in program.output()
    program.kill()
    workflows.chmod(0o777)
    program = start_program(POSTERN_WORKFLOWS=str(workflows), **environment)
    assert said in program.output()
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


@pytest.mark.parametrize(
    ("mode", "owner", "problem", "is_lost"),
    [
        (0o700, "mine", None, False),
        (0o755, "mine", None, False),
        (0o770, "mine", "its group could write into it until now, and may have changed what is there", False),
        (0o777, "mine", "everybody could write into it until now, and may have changed what is there", False),
        (0o1777, "mine", "everybody may put files into it", False),
        (0o700, "another's", "it belongs to the user 4242, who may read and replace everything in it", False),
        (0o777, "another's", "it belongs to the user 4242, and everybody may write into it", True),
        (0o1777, "another's", "it belongs to the user 4242, and everybody may write into it", True),
        (0o2770, "root's", None, False),
        (0o777, "root's", "everybody may write into it", False),
        (0o1777, "root's", "everybody may put files into it", False),
    ],
)
def test_who_may_write_into_a_folder_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int, owner: str, problem: str | None, is_lost: bool
) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    folder.chmod(mode)
    if owner != "mine":
        # As the process of another user sees it; only root could give the folder away.
        belongs_to = 0 if owner == "root's" else 4242
        seen = os.stat_result((folder.stat().st_mode, 0, 0, 0, belongs_to, 0, 0, 0, 0, 0))
        monkeypatch.setattr(Path, "stat", lambda _: seen)
        monkeypatch.setattr(os, "geteuid", lambda: 1000)
    found = openness(folder)
    assert (found and found.problem, bool(found and found.is_lost)) == (problem, is_lost)


def test_a_start_says_what_is_wrong_with_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings({"POSTERN_DATA_DIR": str(tmp_path / "data")})
    said: list[dict[str, object]] = []
    log = SimpleNamespace(warning=lambda event, **about: said.append(about))
    monkeypatch.setattr(gateway, "log", log)
    settings.data_dir.mkdir()
    settings.data_dir.chmod(0o777)
    with gateway.alone(settings):
        assert said.pop()["folder"] == str(settings.data_dir.resolve())
    with gateway.alone(settings):
        assert said == [] and open_to_others(settings.data_dir) == {}, "it has been closed"
    monkeypatch.setattr(gateway, "openness", lambda folder: Openness("it is another's", is_lost=True))
    with pytest.raises(CannotStart, match="is not safe: it is another's"):
        gateway.alone(settings).__enter__()


def test_a_key_that_was_brought_is_closed_to_others(tmp_path: Path) -> None:
    settings = Settings({"POSTERN_DATA_DIR": str(tmp_path / "data")})
    (key,) = gateway.secret_keys(settings)
    file = settings.data_dir / "secret.key"
    file.chmod(0o644)
    assert gateway.secret_keys(settings) == [key]
    assert file.stat().st_mode & 0o777 == 0o600


def called(program: Program) -> None:
    made = admin_of(program).post("webhooks", {"name": "Orders", "authentication": {"method": "none"}}).json
    assert Client(program.port).post("/webhook/" + made["url"].rpartition("/")[2], {"a": 1}).status == 200


def test_a_second_look_at_the_database_leaves_the_locks_on_it(tmp_path: Path) -> None:
    """Opening and closing the file beside SQLite would take the locks away: another process would then delete the
    log."""
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


def test_a_command_ends_in_a_folder_of_another_user_that_nobody_has_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    another = os.geteuid() or 4711
    os.chown(folder, another, -1)
    monkeypatch.setattr(os, "geteuid", lambda: another + 1)
    monkeypatch.chdir(tmp_path)
    local = LocalApi(Settings({}))
    for deed in (local.machine, lambda: local.ask(HttpQuestion("GET", "/webhooks", {}, None))):
        with pytest.raises(SystemExit):
            deed()
        assert "belongs to another user" in capsys.readouterr().err
    assert not [*folder.iterdir()]
    check_owner(Settings({"POSTERN_DATA_DIR": "data"}))
