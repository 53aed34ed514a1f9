"""A command on the local database, while a gateway serves it."""

import json
import socket
from pathlib import Path

from postern.wiring.told import NAME
from support.client import Client
from support.forks import impatient
from support.program import StartProgram, run_postern
from support.waiting import wait_until

BY_ITSELF_NEVER = impatient(
    **{
        "postern.usecases.runtime.directory.LOOK_EVERY": 3600.0,
        "postern.surfaces.console.rehearsal.AFTER": 3600.0,  # its pages look as well
    }
)


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


def test_what_one_that_was_killed_has_left_is_in_nobodys_way(
    start_program: StartProgram, tmp_path: Path
) -> None:
    (tmp_path / "data").mkdir()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as left:
        left.bind(str(tmp_path / "data" / NAME))
    program = start_program(POSTERN_ENGINE="none", POSTERN_DATA_DIR=str(tmp_path / "data"), **BY_ITSELF_NEVER)
    code = made_by_a_command(tmp_path)
    caller = Client(program.port)
    wait_until(lambda: caller.post(f"/webhook/{code}", {}).status == 401, what="it to be served")


def test_where_the_folders_name_is_too_long_for_a_socket_it_is_served_a_moment_later(
    start_program: StartProgram, tmp_path: Path
) -> None:
    data = str(tmp_path / ("d" * 120))
    program = start_program(POSTERN_ENGINE="none", POSTERN_DATA_DIR=data)
    code = made_by_a_command(tmp_path, POSTERN_DATA_DIR=data)
    caller = Client(program.port)
    wait_until(lambda: caller.post(f"/webhook/{code}", {}).status == 401, what="it to be served")
