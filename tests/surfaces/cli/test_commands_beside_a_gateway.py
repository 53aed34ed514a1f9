"""Commands on the machine of a gateway: while one serves the data it answers, and otherwise they open the database."""

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from postern.surfaces.cli.develop import presence
from postern.surfaces.cli.develop.presence import Lines
from postern.surfaces.cli.develop.target import LocalTarget
from postern.surfaces.cli.gateway import beside
from postern.surfaces.cli.gateway.api import api
from postern.surfaces.cli.gateway.beside import NAME
from postern.surfaces.cli.gateway.source import HttpAnswer, HttpQuestion
from postern.surfaces.cli.run import UNAVAILABLE, USAGE
from support.client import Client, admin_of
from support.commands import typed
from support.forks import impatient
from support.program import Program, StartProgram, clean_environment, run_command, run_executable, run_postern
from support.waiting import wait_until

BY_ITSELF_NEVER = impatient(
    **{
        "postern.usecases.runtime.directory.CHECK_WEBHOOKS_EVERY": 3600.0,
        "postern.surfaces.console.rehearsal.AFTER": 3600.0,  # its pages look as well
    }
)
LOADED = """
import sys
from postern.__main__ import main
try: main()
except SystemExit: print([name for name in ("sqlalchemy", "starlette", "pydantic", "asyncio", "cryptography", "aiohttp", "httpx2") if name in sys.modules], file=sys.stderr)
"""


def made_by_a_command(folder: Path, **environment: str) -> str:
    words = ("webhooks", "create", "Orders", "--json")
    made = run_postern(folder, *words, **environment)
    assert made.returncode == 0, made.stderr
    return str(json.loads(made.stdout)["url"]).rpartition("/")[2]


def engine_in_the_status_of(folder: Path, **environment: str) -> str:
    """Only a gateway has one."""
    said = run_postern(folder, "status", **environment).stdout
    return next(line for line in said.splitlines() if line.startswith("engine: "))


HEARD = b'{"calls":[],"id":"lsn_1","name":"ada@laptop","by":"command line","address":"","answers":null,"since":"2026-11-23T00:00:00Z","askWithin":15}'
FROM_A_GATEWAY, FROM_THE_DATABASE = (
    "engine: ok, none in this process",
    "engine: not seen from here; /readyz of the gateway that serves says how it is",
)


@pytest.fixture
def program(start_program: StartProgram) -> Program:
    return start_program(POSTERN_ENGINE="none", **BY_ITSELF_NEVER)


def test_the_gateway_answers_and_knows_at_once_what_a_command_has_made(
    program: Program, tmp_path: Path
) -> None:
    code = made_by_a_command(tmp_path)
    assert Client(program.port).post(f"/webhook/{code}", {}).status == 401, "it is served"
    said = run_postern(tmp_path, "status").stdout
    assert "to the gateway that runs on this machine, as command line with access level admin." in said
    assert FROM_A_GATEWAY in said
    notes = admin_of(program).get("audit").json["items"]
    assert [one["actor"] for one in notes if one["action"] == "webhook created"] == ["command line"]
    assert program.stop() == 0
    assert not (program.data_dir / NAME).exists()
    assert engine_in_the_status_of(tmp_path) == FROM_THE_DATABASE


def test_a_command_that_a_gateway_answers_loads_no_database(program: Program, tmp_path: Path) -> None:
    given = clean_environment({"POSTERN_DATA_DIR": str(program.data_dir), "HOME": str(tmp_path)})
    ran = run_command(sys.executable, "-c", LOADED, "webhooks", "list", environment=given)
    assert (ran.returncode, ran.stdout) == (0, "No webhook yet: postern webhooks create NAME\n")
    assert ran.stderr == "[]\n"


def test_a_command_with_other_settings_than_the_gateway_uses_its_own(
    program: Program, tmp_path: Path
) -> None:
    other = f"sqlite:///{tmp_path / 'other.db'}"
    own = run_postern(tmp_path, "webhooks", "list", POSTERN_DATABASE_URL=other)
    assert "There is no database" in own.stderr
    for setting, same, different in (
        ("POSTERN_BASE_URL", "", "https://hooks.example.com"),
        ("POSTERN_ENGINE", "none", "embedded"),
        ("POSTERN_DATA_DIR", "data/../data", ""),
    ):
        assert engine_in_the_status_of(tmp_path, **{setting: same}) == FROM_A_GATEWAY
        if different:
            assert engine_in_the_status_of(tmp_path, **{setting: different}) == FROM_THE_DATABASE


def test_what_one_that_was_killed_has_left_is_in_nobodys_way(
    start_program: StartProgram, tmp_path: Path
) -> None:
    (tmp_path / "data").mkdir()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as left:
        left.bind(str(tmp_path / "data" / NAME))
    made_by_a_command(tmp_path)
    start_program(POSTERN_ENGINE="none", POSTERN_DATA_DIR=str(tmp_path / "data"))
    assert engine_in_the_status_of(tmp_path) == FROM_A_GATEWAY


IMPOSTOR = """
import os, socket, sys
os.setuid(65534)
with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
    listener.bind(sys.argv[1])
    listener.listen()
    print("listens", flush=True)
    line, _ = listener.accept()
    print(len(line.recv(1000)), flush=True)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make what belongs to others")
def test_nothing_is_told_to_a_socket_or_in_a_folder_of_another_user(tmp_path: Path) -> None:
    words = ("webhooks", "create", "Payments", "--auth", "token", "--secret", "env:TOKEN")
    data = tmp_path / "data"
    data.mkdir()
    data.chmod(0o777)
    for folder in (tmp_path, *tmp_path.parents):
        if not folder.stat().st_mode & 0o001:
            folder.chmod(folder.stat().st_mode | 0o011)
    with subprocess.Popen(
        [sys.executable, "-c", IMPOSTOR, str(data / NAME)], stdout=subprocess.PIPE, text=True
    ) as impostor:
        assert impostor.stdout is not None and impostor.stdout.readline() == "listens\n"
        ran = run_postern(tmp_path, *words, TOKEN="whk_a_secret_of_mine")
        assert ran.returncode == UNAVAILABLE and "another user" in ran.stderr
        assert impostor.stdout.readline() == "0\n", "bytes that it was sent"
    os.chown(data, 65534, 65534)
    ran = run_executable(*words, folder=tmp_path, TOKEN="whk_a_secret_of_mine")
    assert ran.returncode == USAGE and "belongs to another user" in ran.stderr
    assert not (data / "postern.db").exists()
    assert run_postern(tmp_path, "webhooks", "create", "Own", POSTERN_DATA_DIR="data").returncode == 0


def test_where_the_folders_name_is_too_long_for_a_socket_it_is_served_a_moment_later(
    start_program: StartProgram, tmp_path: Path
) -> None:
    data = str(tmp_path / ("d" * 120))
    program = start_program(POSTERN_ENGINE="none", POSTERN_DATA_DIR=data)
    code = made_by_a_command(tmp_path, POSTERN_DATA_DIR=data)
    caller = Client(program.port)
    wait_until(lambda: caller.post(f"/webhook/{code}", {}).status == 401, what="it to be served")


@pytest.fixture
def silent(tmp_path: Path) -> Iterator[socket.socket]:
    """Takes the place of a gateway, and never answers."""
    (tmp_path / "data").mkdir()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(tmp_path / "data" / NAME))
        listener.listen()
        yield listener


@pytest.mark.parametrize(
    ("is_served", "asked"), [(True, b'{"known":[]}'), (False, b'{"known":[],"waitSeconds":0}')]
)
def test_who_listens_beside_a_gateway_waits_there_and_looks_into_a_database_by_itself(
    monkeypatch: pytest.MonkeyPatch, is_served: bool, asked: bytes
) -> None:
    said: list[bytes | None] = []

    def ask(question: HttpQuestion, within: float | None) -> HttpAnswer:
        said.append(question.body)
        return HttpAnswer(200, HEARD)

    local = SimpleNamespace(ask=ask, is_served=is_served, close=lambda: None)
    monkeypatch.setattr(api, "open_local", lambda: local, raising=False)
    monkeypatch.setattr(presence, "ASK_DATABASE_EVERY", 0.0)
    listener = presence.Presence("ada@laptop", LocalTarget("http://127.0.0.1:1", None, 1.0), Lines())
    try:
        listener.enter()
        assert listener._asked() == []
    finally:
        api.close()
    assert said[1] == asked


def test_a_gateway_that_is_killed_before_it_has_answered_is_told_and_nothing_is_done_twice(
    silent: socket.socket, tmp_path: Path
) -> None:
    def take_and_end() -> None:
        line, _ = silent.accept()
        with line:
            line.recv(65536)

    killed = threading.Thread(target=take_and_end)
    killed.start()
    ran = typed(tmp_path, "webhooks", "create", "Orders")
    killed.join()
    why = "The gateway that serves this data ended before it had answered; it may have done what was asked.\n"
    assert (ran.exit_code, ran.stderr) == (UNAVAILABLE, why)
    assert not (tmp_path / "data" / "postern.db").exists()


def test_a_gateway_that_stands_still_is_not_waited_for_for_ever(
    silent: socket.socket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(beside, "ANSWER_WITHIN", 0.1)
    ran = typed(tmp_path, "webhooks", "list")
    why = "The gateway that serves this data does not answer.\n"
    assert (ran.exit_code, ran.stderr) == (UNAVAILABLE, why)
