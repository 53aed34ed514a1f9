"""Commands that run a user's workflow files, whatever these do."""

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from postern.surfaces.cli.run import FAILED, INTERRUPTED, UNAVAILABLE
from postern.usecases.history import samples
from support.commands import typed
from support.fresh import fresh_data
from support.house import OWNER, a_house
from support.program import clean_environment, run_postern
from support.waiting import PATIENCE, wait_until

HEAD = "from postern.workflows import respond, workflow\n"
OWN_ERROR = "class Own(Exception):\n    def __str__(self):\n        {words}\n\nraise Own\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "workflows").mkdir()
    fresh_data(tmp_path / "data")
    return tmp_path


def ran(folder: Path, *words: str) -> Any:
    return typed(folder, "workflows", *words, POSTERN_WORKFLOWS=str(folder / "workflows"))


def written(folder: Path, code: str) -> None:
    (folder / "workflows" / "own.py").write_text(HEAD + code)


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("def (\n", "own.py, line 2: invalid syntax"),
        ("raise GeneratorExit('g')\n", "own.py, line 2: GeneratorExit: g"),
        ("raise BaseExceptionGroup('g', [KeyboardInterrupt()])\n", "BaseExceptionGroup: g (1 sub-exception)"),
        (OWN_ERROR.format(words="return 5"), "own.py, line 6: Own: (it has no words for it)"),
        (OWN_ERROR.format(words="raise SystemExit(0)"), "own.py, line 6: Own: (it has no words for it)"),
        (OWN_ERROR.format(words="return 'x' * 9_999_999"), f"Own: {'x' * 2000}\n"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_where_its_workflows_are_listed(
    folder: Path, code: str, why: str
) -> None:
    written(folder, code)
    listed = ran(folder, "list")
    assert (listed.exit_code, listed.stdout) == (UNAVAILABLE, "")
    assert listed.stderr.startswith("the workflows file has an error: ") and why in listed.stderr


def test_what_a_file_prints_is_not_among_what_is_listed(folder: Path) -> None:
    written(folder, "print('x' * 9)\n\n@workflow\ndef own(event):\n    pass\n")
    listed = ran(folder, "list", "--json")
    assert [one["name"] for one in json.loads(listed.stdout)["items"]] == ["own"]
    assert "xxxxxxxxx" in listed.stderr


def sample_of(folder: Path) -> str:
    async def recorded() -> str:
        async with a_house(folder) as house:
            webhook = await house.webhook()
            await samples.arm(house.gateway, OWNER, webhook.id)
            await house.call(webhook, b'{"a": 1}')
            return str(webhook.id)

    return asyncio.run(recorded())


def tried(folder: Path, code: str) -> Any:
    written(folder, code)
    return ran(folder, "try", "own", "--sample", sample_of(folder))


def test_what_a_workflow_prints_moves_no_terminal_and_is_kept_where_it_closes_its_output(
    folder: Path,
) -> None:
    body = "    print('\\x1b[31m \\ud800')\n    sys.stdout.close()\n    respond('\\ud800')\n"
    went = tried(folder, f"import sys\n\n@workflow\ndef own(event):\n{body}")
    assert (went.exit_code, went.stdout) == (0, '·[31m ·\nAnswer 200:\n"\\ud800"\n')


def test_how_a_workflow_failed_is_told_in_so_many_words(folder: Path) -> None:
    went = tried(folder, "@workflow\ndef own(event):\n    raise ValueError('x' * 9_999_999)\n")
    assert went.exit_code == FAILED and 10_000 < len(went.stderr) < 21_000


TRY = ["try", "own", "--sample", "WEBHOOK"]


@pytest.mark.parametrize(
    ("words", "indent", "code"), [(["list"], "", UNAVAILABLE), (TRY, "", FAILED), (TRY, "    ", FAILED)]
)
def test_a_file_or_a_workflow_that_ends_the_process_is_told_with_its_line(
    folder: Path, words: list[str], indent: str, code: int
) -> None:
    sample = sample_of(folder)
    written(folder, f"import os\n\n@workflow\ndef own(event):\n    pass\n{indent}os._exit(0)\n")
    words = [sample if one == "WEBHOOK" else one for one in words]
    program = run_postern(folder, "workflows", *words, POSTERN_WORKFLOWS=str(folder / "workflows"))
    assert program.returncode == code
    assert "os._exit(0) would end the process" in program.stderr and "line 7" in program.stderr


def test_processes_that_a_workflow_makes_end_as_they_would(folder: Path) -> None:
    went = tried(
        folder,
        "import os\n\n@workflow\ndef own(event):\n    made = os.fork()\n    if not made:\n        os._exit(7)\n"
        "    respond(os.waitstatus_to_exitcode(os.waitpid(made, 0)[1]))\n",
    )
    assert (went.exit_code, went.stdout) == (0, "Answer 200:\n7\n")


ENDLESS = "{indent}open({begun!r}, 'w').close()\n{indent}while True:\n{indent}    pass\n"


@pytest.mark.parametrize("where", ["in the file", "in the workflow"])
def test_one_ctrl_c_ends_what_never_ends(folder: Path, where: str) -> None:
    begun = str(folder / "begun")
    if where == "in the file":
        written(folder, ENDLESS.format(indent="", begun=begun))
        words = ["list"]
    else:
        written(folder, "@workflow\ndef own(event):\n" + ENDLESS.format(indent="    ", begun=begun))
        words = ["try", "own", "--sample", sample_of(folder)]
    program = subprocess.Popen(
        [sys.executable, "-m", "postern", "workflows", *words],
        env=clean_environment(
            {"POSTERN_DATA_DIR": str(folder / "data"), "POSTERN_WORKFLOWS": str(folder / "workflows")}
        ),
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_until(lambda: (folder / "begun").exists(), what="the file to be read")
        program.send_signal(signal.SIGINT)
        said = program.communicate(timeout=PATIENCE)[1]
    finally:
        program.kill()
        program.wait()
    assert (program.returncode, said.splitlines()[-1]) == (INTERRUPTED, "Interrupted.")
