"""A command on the local database, while a gateway serves it."""

import json
import socket
from pathlib import Path

import pytest

from postern.wiring.told import NAME
from support.client import Client
from support.forks import impatient
from support.program import StartProgram, run_postern
from support.waiting import wait_until

BY_ITSELF_NEVER = impatient(**{"postern.usecases.runtime.directory.LOOK_EVERY": 3600.0})


def made_by_a_command(folder: Path, **environment: str) -> str:
    words = ("webhooks", "create", "Orders", "--json")
    made = run_postern(folder, *words, **environment)
    assert made.returncode == 0, made.stderr
    return str(json.loads(made.stdout)["url"]).rpartition("/")[2]


def test_who_calls_what_a_command_has_just_made_is_served(
    start_program: StartProgram, tmp_path: Path
) -> None:
    program = start_program(POSTERN_ENGINE="none", **BY_ITSELF_NEVER)
    caller = Client(program.port)
    for _ in range(3):
        code = made_by_a_command(tmp_path)
        wait_until(
            lambda code=code: caller.post(f"/webhook/{code}", {}).status == 401, what="it to be served"
        )
    assert program.stop() == 0
    assert not (program.data_dir / NAME).exists()


@pytest.mark.parametrize("folder", ["data", "d" * 120])
def test_a_gateway_starts_where_one_was_killed_and_where_no_socket_fits(
    start_program: StartProgram, tmp_path: Path, folder: str
) -> None:
    data = tmp_path / folder
    data.mkdir()
    if folder == "data":
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as left:
            left.bind(str(data / NAME))
    program = start_program(POSTERN_ENGINE="none", POSTERN_DATA_DIR=str(data))
    code = made_by_a_command(tmp_path, POSTERN_DATA_DIR=str(data))
    caller = Client(program.port)
    wait_until(lambda: caller.post(f"/webhook/{code}", {}).status == 401, what="it to be served")
