"""The pytest plugin: two fixtures for tests of workflow files, and the way to import those. pytest itself loads it
(the entry point ``pytest11`` in pyproject.toml) in every project of the environment, so it imports nothing of the
gateway, and does nothing until a test asks for it or there is a folder of workflows."""

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from postern.workflows import Event, testing

EVENTS = "events"


def pytest_configure(config: pytest.Config) -> None:
    """Tests import the workflow files by their names, as these import each other."""
    named = os.environ.get("POSTERN_WORKFLOWS")
    path = Path(named) if named else config.rootpath / "workflows"
    folder = path.parent if path.suffix == ".py" else path
    if folder.is_dir() and str(folder.resolve()) not in sys.path:
        sys.path.append(str(folder.resolve()))  # last: a json.py in it takes nobody's place


def pytest_unconfigure(config: pytest.Config) -> None:
    """`postern workflows test` is told that pytest came to its end: who calls `os._exit(0)` ends it as if all was well."""
    noted = os.environ.get("WORKFLOW_TESTS_END")
    if noted and not hasattr(config, "workerinput"):  # of pytest-xdist, which has several of it
        with suppress(OSError):
            Path(noted).touch()


@pytest.fixture
def run_workflow() -> Callable[..., Any]:
    """``postern.workflows.testing.run``"""
    return testing.run


@pytest.fixture
def load_event(request: pytest.FixtureRequest) -> Callable[[str], Event]:
    """The event in a file of the folder ``events`` beside the test; its name without ``.json`` will do."""

    def load(name: str) -> Event:
        file = request.path.parent / EVENTS / name
        return testing.load_event(file if file.suffix == ".json" else file.with_name(f"{file.name}.json"))

    return load
