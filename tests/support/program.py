"""The real program: ``postern serve`` as a process of its own, on a free port, with its data in the test's
folder."""

import json
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from support import forks
from support.fresh import fresh_database
from support.waiting import PATIENCE, free_port, wait_until

STOPPED_WITHIN = 60.0
CHILDREN_END_WITHIN = 10.0
ADMIN_KEY = "pk_test_admin_0123456789abcdefghijklmnopqrstuvwxyz"


class Program:
    """A running ``postern serve``. What it prints is in ``output()``; nothing of it stays when its test
    ends."""

    def __init__(
        self,
        folder: Path,
        environment: dict[str, str],
        arguments: tuple[str, ...] = (),
        descriptors: str = "",
        command: str = "serve",
    ) -> None:
        """``descriptors``: how many the program may have, as ``prlimit`` takes it (soft:hard)."""
        folder.mkdir(parents=True, exist_ok=True)
        self.port = int(environment.get("POSTERN_PORT") or free_port())
        self.url = f"http://127.0.0.1:{self.port}"
        self.admin_key = environment.get("POSTERN_ADMIN_KEY", ADMIN_KEY)
        self.data_dir = Path(environment.get("POSTERN_DATA_DIR", folder / "data"))
        given = {
            "POSTERN_PORT": str(self.port),
            "POSTERN_DATA_DIR": str(self.data_dir),
            "POSTERN_ADMIN_KEY": self.admin_key,
            **environment,
        }
        # Whatever the program starts inherits this mark, and is found by it in any process group.
        self._mark = secrets.token_hex(8)
        self.environment = clean_environment({**given, "TEST_BED": self._mark})
        self._log = folder / f"postern-{self.port}.log"
        assert forks.IMPATIENCE not in environment or forks.can_start(environment), "a fork can be impatient"
        self.process: subprocess.Popen[bytes] | forks.Fork
        if forks.can_start(environment) and not descriptors:
            if not self.data_dir.exists() and "POSTERN_DATABASE_URL" not in environment:
                fresh_database(self.data_dir / "postern.db")
            self.process = forks.Fork((command, *arguments), folder, self.environment, self._log, self._log)
            return
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [
                    *(("prlimit", f"--nofile={descriptors}") if descriptors else ()),
                    *(sys.executable, "-m", "postern", command, *arguments),
                ],
                cwd=folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                process_group=0,
            )

    def __enter__(self) -> "Program":
        """Ready. What runs inside ends cleanly, or where it fails as by a power cut."""
        try:
            self.wait_until_ready()
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(self, failed: type[BaseException] | None, *_: object) -> None:
        try:
            assert failed or self.process.poll() is not None or self.stop() == 0
        finally:
            self.kill()

    def output(self) -> str:
        return self._log.read_text(errors="replace")

    def wait_until_ready(self) -> None:
        def answered_or_ended() -> bool:
            return self.process.poll() is not None or self.is_ready()

        wait_until(
            answered_or_ended,
            what=lambda: f"/readyz to answer 200; postern said:\n{self.output()}\n",
            every=0.05,
        )
        assert self.process.poll() is None, (
            f"postern ended with {self.process.returncode} before it was ready:\n{self.output()}"
        )
        # Python says so and goes on, with less planted than the test believes.
        assert "Error in sitecustomize" not in self.output(), self.output()

    def is_ready(self) -> bool:
        return self._readiness()[0] == 200

    def wait_for_engine(self) -> None:
        wait_until(lambda: json.loads(self._readiness()[1])["engine"]["ok"], what="the engine")

    def _readiness(self) -> tuple[int, bytes]:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=2)
        try:
            connection.request("GET", "/readyz")
            answer = connection.getresponse()
            return answer.status, answer.read()
        except (OSError, HTTPException):
            return 0, b""
        finally:
            connection.close()

    def stop(self) -> int:
        """Stops the program as a supervisor does. Returns the exit status; a process that stays behind, or hangs, is
        a failure."""
        self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(STOPPED_WITHIN)
            wait_until(
                lambda: not self.processes_left(),
                CHILDREN_END_WITHIN,
                what="every process of the program to end",
            )
        except (subprocess.TimeoutExpired, AssertionError) as error:
            raise AssertionError(f"postern did not end cleanly on SIGTERM:\n{self.output()}") from error
        finally:
            self.kill()
        return status

    def kill(self) -> None:
        """Ends all of it at once, as a power cut does."""
        for process in {self.process.pid, *self.processes_left()}:
            # Once waited for, the number may be somebody else's.
            if process != self.process.pid or self.process.poll() is None:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
        self.process.wait(STOPPED_WITHIN)

    def megabytes(self, kind: str = "VmRSS") -> float:
        """How much memory it holds, by one of Linux' ways to count."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split(f"{kind}:")[1].split()[0]) / 1024

    def processes_left(self) -> list[int]:
        mark = f"TEST_BED={self._mark}".encode()
        left = []
        # Each stop of a program asks thrice: a path made of each process would take most of it.
        for process in filter(str.isdigit, os.listdir("/proc")):
            with suppress(OSError), open(f"/proc/{process}/environ", "rb", 0) as environment:
                if mark in environment.read():  # what has ended meanwhile, or is not ours, cannot be read
                    left.append(int(process))
        return left


def clean_environment(given: dict[str, str]) -> dict[str, str]:
    """The settings that were given and none from the shell that runs the tests."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("POSTERN_")}
    return {**inherited, "PYTHONUNBUFFERED": "1", **given}


def run_postern(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """One command of the command line, as a process of its own: ``run_postern(tmp_path, "keys", "list",
    POSTERN_DATA_DIR=…)``."""
    given = {
        "POSTERN_DATA_DIR": str(folder / "data"),
        "XDG_CONFIG_HOME": str(folder / "config"),
        **environment,
    }
    if forks.can_start(environment):
        return _run_fork(folder, arguments, clean_environment(given))
    return run_executable(*arguments, folder=folder, **given)


def run_executable(
    *arguments: str, folder: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """One command as users start it, wherever it is started by a test."""
    command = (sys.executable, "-m", "postern", *arguments)
    return run_command(*command, folder=folder, environment=clean_environment(environment))


def run_command(
    *command: str | Path, folder: Path | None = None, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Any program to its end, whatever it ends with. Where no environment is given it has that of the tests."""
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=840, check=False
    )


def _run_fork(
    folder: Path, arguments: tuple[str, ...], environment: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    with TemporaryDirectory() as written:
        output, errors = Path(written, "output"), Path(written, "errors")
        fork = forks.Fork(arguments, folder, environment, output, errors)
        try:
            code = fork.wait(PATIENCE)
        finally:
            fork.kill()
        return subprocess.CompletedProcess(fork.args, code, output.read_text(), errors.read_text())


StartProgram = Callable[..., Program]
DATABASES = ("migrated_url", "postgres_url", "own_postgres")


@pytest.fixture
def start_program(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StartProgram]:
    """``start_program(POSTERN_ENGINE="http", …)`` gives a program that is ready. Call it again for a second
    one, on the same
    ``POSTERN_DATA_DIR`` for a restart. Whatever still runs when the test ends is ended, and must end cleanly.
    """
    # A program whose database goes away under it waits ten seconds before it ends.
    for database in DATABASES:
        if database in request.fixturenames:
            request.getfixturevalue(database)
    started: list[Program] = []

    def start(*, ready: bool = True, descriptors: str = "", **environment: str) -> Program:
        program = Program(tmp_path, environment, descriptors=descriptors)
        started.append(program)
        if ready:
            program.wait_until_ready()
        return program

    try:
        yield start
        for program in started:
            if program.process.poll() is None:
                program.stop()
    finally:
        for program in started:
            program.kill()
