"""The fixtures that every test may ask for; what they are is said in `support/`."""

import faulthandler
import gc
import os
import signal
import sys
from collections.abc import Generator
from functools import cache
from pathlib import Path

import hypothesis
import pytest
import structlog
from _pytest.faulthandler import fault_handler_stderr_fd_key

from postern.observe.logs import log
from support import forks
from support.characters import know_characters
from support.hashing import hash_in_no_time
from support.memory import write_to_memory
from support.statements import share_statements

pytest_plugins = ["support.browser", "support.postgres", "support.program", "support.shop"]
"""Their fixtures are there for every test."""

# A shell that starts the suite in the background has it ignore Ctrl-C, `nohup` the end of a terminal, and every program that
# a test starts with it.
for ignored, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(ignored) is signal.SIG_IGN:
        signal.signal(ignored, usual)

# With it, every program that a test starts is compiled at each of its starts, which takes longer than all the rest of it.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# All that is asked without TLS is on this machine, and no proxy leads there. What is installed comes with TLS.
for name in ("HTTP_PROXY", "http_proxy"):
    os.environ.pop(name, None)

# Where this machine has no Node.js, the one beside this Python (scripts/install.py).
os.environ["PATH"] += os.pathsep + str(Path(sys.executable).parent)

write_to_memory()
share_statements()
hash_in_no_time()

# As the program has it (`wiring/serving.py`): with Python's own, one tenth of what tests take is looking for what is not there.
gc.set_threshold(20_000, 20, 100)

# How long an example takes says how busy the machine is, and nothing about the code.
hypothesis.settings.register_profile("suite", deadline=None)
hypothesis.settings.load_profile("suite")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Of all tests that are async functions (`anyio_mode` in pyproject.toml)."""
    return "asyncio"


LONGEST = (
    "journeys/test_workers.py",
    "surfaces/console/test_pages.py",
    "surfaces/cli/test_listen.py",
    "test_distribution.py",
    "test_simulated.py",
    "journeys/test_kill.py",
    "test_choices.py",
    "test_mutants.py",
    "surfaces/rest/test_openapi.py",
    "surfaces/console/test_inspector.py",
    "engines/test_embedded_troubles.py",
    "surfaces/console/test_truths.py",
    "wiring/test_program.py",
    "surfaces/console/test_looks.py",
    "journeys/test_waiting.py",
    "test_deployment.py",
    "journeys/test_two_processes.py",
    "surfaces/console/test_many.py",
    "engines/test_embedded_life.py",
    "usecases/history/test_code.py",
    "surfaces/cli/test_remote.py",
    "journeys/test_story.py",
    "surfaces/http/test_floods.py",
    "stores/test_history.py",
    "test_architecture.py",
    "test_canary.py",
    "surfaces/mcp/test_mcp.py",
    "test_doc_blocks.py",
    "journeys",
    "wiring",
    "engines",
    "surfaces",
    "stores",
    "usecases",
)
"""Files that take long, then folders whose tests wait for programs. A file is one process's work, so the long ones come
first: one that began last would be waited for by nobody but itself. Those that mostly wait stand between those that keep
a core busy, so that some of each are at work."""

EXECUTABLE = (
    "journeys/test_kill.py",
    "journeys/test_workers.py",
    "wiring/test_private_files.py",
)
"""Tests of the program as users start it: the others fork one that has loaded everything (`support/forks.py`)."""

FORKED = ("test_canary.py", "test_docs.py", "test_logs.py", "test_matrix.py")
"""Of the files beside the folders those that ask the program something. The others are of the package as a whole."""

QUICK = ("core", "presets", "outbound", "usecases", "test_settings.py")
SLOW = {"start_program", "served", "page", "browser", "postgres", "own_postgres"}
"""Fixtures that start a program, a browser or a server."""
LONGER = ("usecases/history/test_code.py", "core/test_secrets_in_reprs.py")
"""Three shells and a real curl, for hundreds of calls; and every module of the package, with the libraries of all engines."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--quick-decides", action="store_true", help="end where a quick test fails; they come first"
    )


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(
        config, "workerinput"
    ):  # before there are lanes, of which each would find it out for itself
        know_characters(Path.cwd())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    @cache
    def below_tests(file: Path) -> tuple[str, ...]:
        return file.relative_to(items[0].config.rootpath).parts[1:]

    def parts(item: pytest.Item) -> tuple[str, ...]:
        return below_tests(item.path)

    def place(item: pytest.Item) -> tuple[bool, int]:
        if item.get_closest_marker("quick"):
            return False, QUICK.index(parts(item)[0])
        known = [LONGEST.index(one) for one in ("/".join(parts(item)), parts(item)[0]) if one in LONGEST]
        return True, min(known, default=len(LONGEST))

    for item in items:
        of_the_package = parts(item)[0].endswith(".py") and parts(item)[0] not in FORKED
        if of_the_package or {"/".join(parts(item)), parts(item)[0]} & {*EXECUTABLE}:
            item.add_marker("executable")
        starts_something = SLOW & set(getattr(item, "fixturenames", ())) or "postgres" in item.nodeid
        if parts(item)[0] in QUICK and not starts_something and "/".join(parts(item)) not in LONGER:
            item.add_marker("quick")
    items.sort(key=place)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed and item.config.getoption("quick_decides") and item.get_closest_marker("quick"):
        item.session.shouldfail = "a quick test failed"
    return report


def pytest_collection_finish() -> None:
    """What was loaded for the tests stays for ever: no collection need look through it."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Once more the time limit of pyproject.toml: pytest takes it away when a test fails, and what a failed test leaves running
    may keep its fixtures from ever ending."""
    limit = float(item.config.getini("faulthandler_timeout"))
    if limit > 0:
        faulthandler.dump_traceback_later(
            limit, file=item.config.stash[fault_handler_stderr_fd_key], exit=True
        )


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    forks.allowed = item.get_closest_marker("executable") is None


structlog.reset_defaults()
_to_people = structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)
PLAIN = structlog.get_config() | {"processors": [*structlog.get_config()["processors"][:-1], _to_people]}


@pytest.fixture(autouse=True)
def log_of_the_tests() -> None:
    """A command that a test runs in its own process sets the log up for good: the next test has its own again, with traces as
    Python writes them (the library's own show each variable, which takes seconds)."""
    structlog.configure(**PLAIN)
    vars(log).pop("bind", None)
