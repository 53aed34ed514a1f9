"""Asks the quick tests for one bug, in a fork that has imported everything but Postern."""

import os
import resource
import signal
import sys
import time
from contextlib import suppress

import pytest

from planted.bugs import SOURCE, Mutant, module_of, planted
from planted.in_programs.sitecustomize import Finder
from planted.lines import OPTIONS, Coverage

MEMORY = 4 << 30
TIME_OUT, NO_IMPORT = WITHOUT_A_TEST = ("time-out", "the module cannot be imported")


class Asking:
    """A plugin of pytest: these tests, in this order. A line is written for each that has ended, with its name where it failed."""

    def __init__(self, tests: list[str], output: int) -> None:
        self._order = {test: number for number, test in enumerate(tests)}
        self._output = output

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted(
            (one for one in items if one.nodeid in self._order), key=lambda one: self._order[one.nodeid]
        )

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            os.write(self._output, report.nodeid.encode() + b"\n")

    def pytest_runtest_logfinish(self) -> None:
        os.write(self._output, b"\n")


class QuickTests:
    def __init__(self, coverage: Coverage) -> None:
        self._coverage = coverage
        self._reliable: dict[str, bool] = {}

    def noticed(self, mutant: Mutant) -> str:
        """By which test; empty where none notices it. A test that fails without the bug, too, has noticed nothing."""
        tests = [test for test in self._coverage.tests_of(mutant) if self._reliable.get(test, True)]
        while tests:
            by = self._failed(tests, mutant)
            if by not in tests:
                return by
            if by not in self._reliable:
                self._reliable[by] = not self._failed([by], None)
            if self._reliable[by]:
                return by.removeprefix("tests/")
            print(f"fails without any bug: {by}", file=sys.stderr, flush=True)
            tests = tests[tests.index(by) + 1 :]
        return ""

    def _failed(self, tests: list[str], mutant: Mutant | None) -> str:
        """The first of them that fails, or what else has ended them."""
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.setsid()
            nothing = os.open(os.devnull, os.O_RDWR)
            for descriptor in (0, 1, 2):
                os.dup2(nothing, descriptor)
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            code = 1
            try:
                if mutant is not None:
                    path = str(SOURCE / mutant.file)
                    sys.meta_path.insert(0, Finder(module_of(mutant), path, planted(mutant)))
                files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
                code = int(pytest.main([*OPTIONS, "-x", *files], plugins=[Asking(tests, writing)]))
            finally:
                os._exit(code)
        os.close(writing)
        longest = max(self._coverage.seconds.get(test, 1.0) for test in tests)
        code, output = _ended(child, reading, 60 + 6 * longest)
        if code == 0:
            return ""
        by = next(filter(None, output.decode().splitlines()), "")
        return by or (TIME_OUT if code == -signal.SIGKILL else NO_IMPORT)


def _ended(child: int, reading: int, patience: float) -> tuple[int, bytes]:
    """How, and what it has written. It is killed where no test has ended for so many seconds."""
    os.set_blocking(reading, False)
    output, until = b"", time.monotonic() + patience
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if more := _read(reading):
            output, until = output + more, time.monotonic() + patience
        if done:
            code = os.waitstatus_to_exitcode(status)
            break
        if time.monotonic() > until:
            with suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
        time.sleep(0.02)
    with suppress(ProcessLookupError):  # what it left behind
        os.killpg(child, signal.SIGKILL)
    os.close(reading)
    return code, output


def _read(reading: int) -> bytes:
    try:
        return os.read(reading, 1 << 20)
    except BlockingIOError:
        return b""
