"""What strangers cost the real program when they come in thousands: bounded memory, and it goes on serving."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from support.hooks import TOKEN, Hook, make_hook, wait_until_served
from support.program import Program
from support.wire import exchange, request, wire

KEY = ("X-Api-Key", TOKEN)
JSON = ("Content-Type", "application/json")
BODY = b'{"order": 1}'


@pytest.fixture
def hook(tmp_path: Path) -> Hook:
    return make_hook(tmp_path / "data")


@pytest.fixture
def program(tmp_path: Path, hook: Hook) -> Iterator[Program]:
    program = Program(tmp_path, {"POSTERN_ENGINE": "none", "POSTERN_LOG": "json"})
    try:
        program.wait_until_ready()
        wait_until_served(program.port, hook)
        yield program
        assert program.stop() == 0
        assert "Traceback" not in program.output()
    finally:
        program.kill()


def most_megabytes(program: Program) -> float:
    """The most memory that the program has held so far."""
    status = Path(f"/proc/{program.process.pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def test_uploads_that_break_off_leave_no_memory_behind(program: Program, hook: Hook) -> None:
    whole = 256 * 1024
    broken_off = request("POST", hook.path, [JSON, ("Content-Length", str(whole))], b"x" * (whole - 1))
    before = most_megabytes(program)
    for _ in range(10_000 // 40):
        with ExitStack() as together:
            connections = [together.enter_context(wire(program.port)) for _ in range(40)]
            for connection in connections:
                connection.send(broken_off)
    assert exchange(program.port, "POST", hook.path, [KEY, JSON], BODY).status == 200
    assert most_megabytes(program) < before + 60  # what is on its way at one time is 10, and all of it 2500
