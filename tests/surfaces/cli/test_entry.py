"""Typed arguments become a command, and its end an exit code."""

import contextlib
import io
import subprocess
import sys
from pathlib import Path

import pytest

from postern.surfaces.cli.entry import run_typed
from postern.surfaces.cli.run import FAILED
from support.program import clean_environment, run_command
from support.waiting import PATIENCE


def printed(*words: str) -> tuple[str, int]:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        code = run_typed(list(words))
    return out.getvalue(), code


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--help"], {"export", "webhooks", "keys"}),
        (["webhooks", "--help"], {"list", "create", "show"}),
        (["webhoks", "list"], {"webhooks"}),
        (["webhooks", "lst"], {"list"}),
        (["--bogus", "webhooks", "list"], {"--bogus"}),
        (["webhooks", "create", "X", "--auth", "hmack"], {"'token'", "Did you mean 'hmac'?"}),
    ],
)
def test_a_list_and_a_typing_error_know_of_all_of_them(words: list[str], named: set[str]) -> None:
    text, code = printed(*words)
    assert code == (0 if "--help" in words else 2)
    assert {one for one in named if one in text} == named
    assert "..." not in text.partition("Commands:")[2]  # each with its whole sentence


OPENS_ONE_MORE = """
from postern.__main__ import _open_what_is_closed
_open_what_is_closed()
print("to nobody")
assert open("/dev/null").fileno() > 2
"""


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_output_is_no_trace_and_no_file_that_is_opened_later(closed: str, tmp_path: Path) -> None:
    environment = clean_environment({"POSTERN_DATA_DIR": str(tmp_path)})
    for words in (["-m", "postern", "settings"], ["-c", OPENS_ONE_MORE]):
        command = ("sh", "-c", f'exec "$0" "$@" {closed}', sys.executable, *words)
        done = run_command(*command, environment=environment)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("words", [("--version",), ("schema",)])
def test_an_output_without_room_is_reported_in_a_sentence(words: tuple[str, ...], tmp_path: Path) -> None:
    command = ("sh", "-c", 'exec "$0" "$@" > /dev/full', sys.executable, "-m", "postern", *words)
    done = run_command(*command, environment=clean_environment({"POSTERN_DATA_DIR": str(tmp_path)}))
    printed = "The command's output cannot be written: No space left on device.\n"
    assert (done.returncode, done.stderr) == (FAILED, printed)


@pytest.mark.parametrize(
    ("environment", "name"),
    [
        ({"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, "Größe ✓".encode()),
        ({"PYTHONIOENCODING": "latin-1"}, b"Gr\xf6\xdfe \\u2713"),
    ],
)
def test_a_system_that_is_not_in_utf8_neither_loses_a_folder_nor_stops_a_sentence(
    environment: dict[str, str], name: bytes, tmp_path: Path
) -> None:
    data = tmp_path / "Größe"
    said = []
    for words in (["webhooks", "create", "Größe ✓", "--auth", "none"], ["webhooks", "list"]):
        done = subprocess.run(
            [sys.executable, "-m", "postern", *words],
            capture_output=True,
            env={**clean_environment({"POSTERN_DATA_DIR": str(data)}), **environment},
            timeout=PATIENCE,
        )
        assert (done.returncode, b"Traceback" in done.stderr) == (0, False)
        said.append(done.stdout)
    assert name in said[1]
    assert (data / "postern.db").exists()
