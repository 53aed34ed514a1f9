"""`postern workflows test`: pytest runs the tests of workflow files, from a folder of a user's own."""

import json
import subprocess
import sys
from importlib import util
from pathlib import Path

import pytest

from postern.surfaces.cli.run import FAILED, NOT_FOUND, OK, USAGE
from postern.workflows.scaffold import keep, keep_test, skeleton
from postern.workflows.testing import load_event, make_event
from support.commands import typed
from support.program import clean_environment, run_command, run_postern

WORKFLOW = """
from postern.workflows import respond, step, workflow

@step
def find_order(number):
    raise RuntimeError("reaches out")

@workflow
def order_lookup(event):
    respond(find_order(event["fieldOne"]))
"""
TEST = """
from order_lookup import order_lookup
from postern.workflows.testing import run

def test_found(load_event):
    went = run(order_lookup, load_event("paid"), steps={"find_order": lambda number: {"found": number}})
    assert went.answer.body == {"found": "1001"}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A user's folder: workflow files, and tests with a recorded event."""
    (tmp_path / "workflows").mkdir()
    (tmp_path / "workflows" / "order_lookup.py").write_text(WORKFLOW)
    (tmp_path / "tests" / "events").mkdir(parents=True)
    (tmp_path / "tests" / "test_order_lookup.py").write_text(TEST)
    event = {"posternEvent": 1, "event": make_event(fieldOne="1001")}
    (tmp_path / "tests" / "events" / "paid.json").write_text(json.dumps(event))
    return tmp_path


OURS = [
    "anyio",
    "hypothesispytest",
    "platformdirs",
    "schemathesis",
    "time_machine",
    "xdist",
    "xdist.looponfail",
]
"""Plugins that a user's environment does not have. They are loaded in ten times of what a test takes."""
WITHOUT_OURS = {"PYTEST_ADDOPTS": " ".join(f"-p no:{name}" for name in OURS)}


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return run_postern(folder, "workflows", "test", *words, **WITHOUT_OURS)


def test_tests_are_found_and_run_and_say_what_failed(folder: Path) -> None:
    ran = run(folder)
    assert (ran.returncode, "1 passed" in ran.stdout) == (OK, True), ran.stdout + ran.stderr
    assert not (folder / "data").exists(), "no gateway is asked"
    (folder / "tests" / "test_more.py").write_text(
        "from order_lookup import order_lookup\n"
        "def test_wrong(run_workflow): assert run_workflow(order_lookup, steps={'find_order': 1}).answer.body == 2\n"
    )
    ran = run(folder)
    assert (ran.returncode, "1 failed, 1 passed" in ran.stdout) == (FAILED, True), ran.stdout
    for words in (("tests/test_order_lookup.py",), ("--", "-k", "found")):
        ran = run(folder, *words)
        assert (ran.returncode, "1 passed" in ran.stdout) == (OK, True), ran.stdout
    assert run(folder, "tests/nowhere.py").returncode == NOT_FOUND
    (folder / "tests" / "test_more.py").write_text("import nowhere\n")
    assert run(folder).returncode == FAILED


@pytest.mark.parametrize(
    ("file", "code"),
    [
        ("test_more.py", "import os\n\ndef test_end():\n    os._exit(0)\n"),
        ("conftest.py", "import sys\nsys.exit(0)\n"),
    ],
)
def test_tests_that_end_the_process_have_not_passed(folder: Path, file: str, code: str) -> None:
    (folder / "tests" / file).write_text(code)
    ran = run(folder)
    said = "The tests did not come to their end: a test or a workflow file has ended the process\n"
    assert (ran.returncode, ran.stderr) == (FAILED, said)


def test_where_there_is_no_test_it_says_so(tmp_path: Path) -> None:
    (tmp_path / "workflows").mkdir()
    ran, said = run(tmp_path), "There is no test: a function test_… in a file test_….py.\n"
    assert (ran.returncode, ran.stderr) == (NOT_FOUND, said)


def test_plain_pytest_runs_the_same_tests(folder: Path) -> None:
    command = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider")
    ran = run_command(*command, folder=folder, environment=clean_environment(WITHOUT_OURS))
    assert (ran.returncode, "1 passed" in ran.stdout) == (0, True), ran.stdout


def test_without_pytest_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = util.find_spec
    monkeypatch.setattr(
        "postern.surfaces.cli.workflows.find_spec", lambda name: None if name == "pytest" else real(name)
    )
    ran = typed(tmp_path, "workflows", "test")
    said = "Tests of workflows are run by pytest, which is not installed: pip install pytest\n"
    assert (ran.exit_code, ran.stderr) == (USAGE, said)


def test_pytest_is_given_nothing_of_the_gateway() -> None:
    """The plugin is loaded in every project of the environment."""
    seen = "import sys, postern.workflows.pytest_plugin; print([one for one in sys.modules if one.startswith('postern.') and not one.startswith('postern.workflows')])"
    assert run_command(sys.executable, "-c", seen).stdout == "[]\n"


def test_a_new_workflow_comes_with_a_test_that_passes(tmp_path: Path) -> None:
    event = make_event({"number": "1001", "text": "\\ud83d 漢字"}, fieldOne="1001")
    file = keep(tmp_path / "workflows", "Order paid", skeleton("Order paid", dict(event), "wh_1"))
    tests = tmp_path / "tests"
    fixture, test = keep_test(file, dict(event))
    assert (fixture, test) == (tests / "events" / "order_paid.json", tests / "test_order_paid.py")
    assert load_event(fixture) == event
    ran = run(tmp_path)
    assert (ran.returncode, "1 passed" in ran.stdout) == (OK, True), ran.stdout
    with pytest.raises(FileExistsError):
        keep_test(file, dict(event))
