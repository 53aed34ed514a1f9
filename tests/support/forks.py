"""Programs that start at once: forks of one process that has loaded everything. A program takes most of its start to load
its modules, the same ones each time, and the tests start hundreds of them.

What a fork does afterwards is what ``python -m postern`` does: arguments, environment, folder, output and process group
are its own. Where the interpreter itself is asked for something (``PYTHONPATH``, ``LD_PRELOAD``, a time zone), and for the
tests that are marked ``executable``, the program is started as users start it.
"""

import ctypes
import json
import multiprocessing
import multiprocessing.connection
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from io import TextIOWrapper
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from pathlib import Path
from pkgutil import resolve_name
from types import ModuleType

LOADED = [
    "alembic.command",
    "postern.observe.metrics",
    "postern.wiring.program",
    "postern.wiring.machine",
    "postern.wiring.serving",
    "uvloop",
    "support.warm",
]
READ_AT_ITS_START = ("PYTHON", "LD_", "LC_", "LANG", "TZ")
"""Variables that are read by the interpreter or the C library, before any of our code."""

_forks = multiprocessing.get_context("forkserver")
_forks.set_forkserver_preload(LOADED)
_one_at_a_time = threading.Lock()
_TESTS = str(Path(__file__).parents[1])

IMPATIENCE = "TEST_IMPATIENCE"

allowed = False
"""Said before each test; benchmarks start the real thing."""


def impatient(**seconds: float) -> dict[str, str]:
    """The environment of a fork in which what production waits for takes less: ``impatient(**{"postern.….LEASE": 5.0})``."""
    return {IMPATIENCE: json.dumps(seconds)}


def can_start(given: dict[str, str]) -> bool:
    return allowed and shows(given)


def shows(given: dict[str, str]) -> bool:
    """Whether a fork does with these what the program would that is started with them."""
    return not any(name.startswith(READ_AT_ITS_START) for name in given)


Stream = Path | Connection
"""A file that is written to, or the end of a pipe."""


class Fork:
    """``python -m postern …``, with as much of ``subprocess.Popen`` as tests use."""

    def __init__(
        self,
        arguments: Sequence[str],
        folder: Path,
        environment: dict[str, str],
        output: Stream,
        errors: Stream,
        given: Connection | None = None,
    ) -> None:
        """``given``: what it reads from its standard input."""
        self.args = ["postern", *arguments]
        self._process = _forks.Process(
            target=_be_the_program,
            args=(self.args, str(folder), environment, output, errors, given),
            daemon=True,
        )
        with _one_at_a_time:
            _serve_forks()
            # The fork would load what is the main module here, which is the test runner.
            runner, sys.modules["__main__"] = sys.modules["__main__"], ModuleType("__main__")
            try:
                self._process.start()
            finally:
                sys.modules["__main__"] = runner
        assert self._process.pid is not None
        self.pid: int = self._process.pid

    @property
    def returncode(self) -> int | None:
        return self.poll()

    def poll(self) -> int | None:
        # Each start asks after the others as well, and the answer can be read once.
        with _one_at_a_time:
            return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        multiprocessing.connection.wait([self._process.sentinel], timeout)
        code = self.poll()
        if code is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _serve_forks() -> None:
    """Its process is told of no folder but by its environment, and leaves out in silence what it does not find."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (_TESTS, before)))
    try:
        forkserver.ensure_running()
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


def _be_the_program(
    arguments: list[str],
    folder: str,
    environment: dict[str, str],
    output: Stream,
    errors: Stream,
    given: Connection | None,
) -> None:
    # Tests that are killed leave no gateway at work: then the server ends, unless a fork holds its pipe, and its forks with it.
    os.close(forkserver._forkserver._forkserver_alive_fd)  # type: ignore[attr-defined]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # 1: PR_SET_PDEATHSIG
    os.setpgid(0, 0)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.path[0] = folder
    sys.argv = arguments
    for stream, to in ((sys.stdout, output), (sys.stderr, errors)):
        assert isinstance(stream, TextIOWrapper)
        opened = (
            os.open(to, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
            if isinstance(to, Path)
            else to.fileno()
        )
        os.dup2(opened, stream.fileno())
        os.close(opened) if isinstance(to, Path) else to.close()
        stream.reconfigure(line_buffering=True)
    if given is not None:
        os.dup2(given.fileno(), 0)
        given.close()
        sys.stdin = os.fdopen(0, closefd=False)

    for place, seconds in json.loads(environment.get(IMPATIENCE, "{}")).items():
        owner, _, name = place.rpartition(".")
        assert isinstance(getattr(resolve_name(owner), name), float), place
        setattr(resolve_name(owner), name, seconds)

    from postern.__main__ import main

    main()
