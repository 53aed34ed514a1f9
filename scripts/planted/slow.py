"""Asks the tests that start programs or need Postgres, for a bug that the quick ones have not noticed. The bug is in pytest's
process and in every program that it starts: each imports it from a file (`in_programs/sitecustomize.py`)."""

import marshal
import os
import secrets
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from planted.bugs import ROOT, SOURCE, Mutant, module_of, planted
from planted.lines import IN_PROGRAMS, OPTIONS, Coverage

PATIENCE = 240.0
"""Besides what the tests take. One that waits for what never comes fails after two minutes, with what it waited for."""


class Programs:
    """What is shared by all bugs."""

    def __init__(self, coverage: Coverage, postgres: str) -> None:
        self._coverage, self._postgres = coverage, postgres
        self._unreliable: set[str] = set()

    def noticed(self, mutant: Mutant) -> str:
        """By which test; empty where none notices it. A test that fails without the bug, too, has noticed nothing."""
        tests = [test for test in self._coverage.tests_of(mutant) if test not in self._unreliable]
        while tests:
            failed = self._failed(tests, mutant)
            if failed is None:
                return ""
            if self._failed([failed], None) is None:
                return failed.removeprefix("tests/")
            print(f"fails without any bug: {failed}", file=sys.stderr, flush=True)
            self._unreliable.add(failed)
            tests = tests[tests.index(failed) + 1 :]
        return ""

    def _failed(self, tests: list[str], mutant: Mutant | None) -> str | None:
        mark = secrets.token_hex(8)
        environment = {
            **os.environ,
            "ASKED_FOR_ONE_BUG": mark,
            "POSTERN_TEST_DATABASE_URL": self._postgres,
            "PYTHONPATH": str(IN_PROGRAMS),
        }
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            if mutant is not None:
                bug = Path(folder, "bug")
                bug.write_bytes(
                    marshal.dumps((module_of(mutant), str(SOURCE / mutant.file), planted(mutant)))
                )
                environment["PLANTED_BUG"] = str(bug)
            expected = sum(self._coverage.seconds[test] for test in tests)
            printed = Path(folder, "printed")
            with printed.open("w") as output:
                started = subprocess.Popen(
                    [sys.executable, "-m", "pytest", *OPTIONS, "-x", "-rfE", "--tb=no", *tests],
                    cwd=ROOT,
                    env=environment | {"TMPDIR": folder},
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                )
            try:
                code = started.wait(PATIENCE + 4 * expected)
            except subprocess.TimeoutExpired:
                return None
            finally:
                _end_what_is_left(mark)
                started.wait()
            failures = [line.partition(" ")[2] for line in printed.read_text().splitlines()]
        if code == 0:
            return None
        found = [test for test in tests if any(f"{line} ".startswith(f"{test} ") for line in failures)]
        # Where none of them has failed, pytest itself could not begin.
        return found[0] if found else tests[0]


def _end_what_is_left(mark: str) -> None:
    """Every process inherits the mark, in whatever group it is."""
    for environment in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):  # ended meanwhile, or not ours
            if mark.encode() in environment.read_bytes():
                os.kill(int(environment.parent.name), signal.SIGKILL)


@contextmanager
def asked_of_programs(coverage: Coverage) -> Iterator[Programs]:
    """With one server of Postgres for all bugs."""
    sys.path.insert(0, str(ROOT / "tests"))
    from support.postgres import find_binaries, running

    binaries = find_binaries()
    if binaries is None:
        raise SystemExit("no Postgres: install the locked packages (`make test`)")
    with running(binaries) as url:
        yield Programs(coverage, url)
