"""Which test runs which line. It is gathered once and kept in `.mutants/`, for each file of tests until that file changes;
when a source changes, what is known of its lines moves with them."""

import json
import os
import re
import shutil
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from planted.bugs import ROOT, SOURCE, Mutant

KEPT = ROOT / ".mutants"
IN_PROGRAMS = Path(__file__).with_name("in_programs")
FOLDERS = ("core", "usecases")
TRACED = (*FOLDERS, "stores")
"""What may be asked for by name: a store is a sentence of SQL, and most of its bugs are the database's to notice."""

OPTIONS = ["-q", "--no-header", "-p", "no:cacheprovider", "-o", "addopts=--import-mode=importlib"]
OPTIONS += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
OPTIONS += ["-p", "anyio", "-p", "_hypothesis_pytestplugin", "--hypothesis-seed=0"]


@dataclass(frozen=True)
class Choice:
    """Of all tests."""

    name: str
    files: tuple[str, ...]
    without: frozenset[str]
    """The fixtures that none of them asks for."""
    in_programs: bool
    together: float
    """Seconds of tests for one bug, as long as they take without it: a line that everything runs is not asked of
    everything."""


QUICK = Choice(
    "quick",
    (
        "tests/core",
        "tests/presets",
        "tests/usecases",
        "tests/stores",
        "tests/surfaces/rest/test_signing_in.py",
        "tests/test_docs.py",
        "tests/test_nothing_forgotten.py",
    ),
    # What starts a program, or a server.
    frozenset(
        {
            "start_program",
            "served",
            "page",
            "browser",
            "postgres",
            "postgres_url",
            "migrated_url",
            "own_postgres",
        }
    ),
    in_programs=False,
    together=40.0,
)
SLOW = Choice(
    "slow",
    ("tests/surfaces", "tests/journeys", "tests/usecases", "tests/stores", "tests/wiring"),
    # A browser adds what pages do with scripts, and takes long; such a server ends and begins again in its test.
    frozenset({"page", "browser", "own_postgres"}),
    in_programs=True,
    together=90.0,
)
LONGEST_FILES = {
    "tests/journeys/test_temporal_away.py",
    "tests/surfaces/http/test_floods.py",
    "tests/surfaces/rest/test_openapi.py",
    "tests/usecases/history/test_code.py",
}
"""Minutes of hundreds of programs, requests or shells, which no single bug is worth."""


class Coverage:
    """What is known of one choice of tests."""

    def __init__(self, choice: Choice) -> None:
        self.choice = choice
        self._file = KEPT / f"{choice.name}.json"
        self._read()

    def _read(self) -> None:
        known: dict[str, Any] = json.loads(self._file.read_text()) if self._file.exists() else {}
        self.digests: dict[str, str] = known.get("digests", {})
        """Of each file of tests, as it was."""
        self.seconds: dict[str, float] = known.get("seconds", {})
        """Of each test."""
        self.sources: dict[str, str] = known.get("sources", {})
        self.lines: dict[str, dict[int, list[str]]] = {
            file: {int(line): tests for line, tests in found.items()}
            for file, found in known.get("lines", {}).items()
        }
        """Of each file: which tests run a line."""
        self.modules: list[str] = known.get("modules", [])
        """Everything that the tests import and that is not Postern's: it is imported once, for all bugs."""

    def keep(self) -> None:
        KEPT.mkdir(exist_ok=True)
        names = ("digests", "seconds", "sources", "lines", "modules")
        self._file.write_text(json.dumps({name: getattr(self, name) for name in names}))

    # --- up to date ---

    def gathered(self) -> "Coverage":
        """Of the files of tests that are new, or have changed."""
        self._follow_sources()
        now = {file: _digest(file) for file in self._files_of_tests()}
        self._forget({file for file, digest in self.digests.items() if _digest(file) != digest})
        missing = [file for file in now if file not in self.digests]
        # One run for each folder, so that whoever ends it has not lost everything.
        folders: dict[tuple[str, ...], list[str]] = defaultdict(list)
        for file in missing:
            folders[Path(file).parent.parts[:3]].append(file)
        for folder, files in folders.items():
            print(
                f"gathering which lines the {self.choice.name} tests in {'/'.join(folder)} run …", flush=True
            )
            if (child := os.fork()) == 0:  # nothing of Postern may be imported here
                code = 1
                try:
                    self._gather(files)
                    self.digests |= {file: now[file] for file in files}
                    self.keep()
                    code = 0
                finally:
                    os._exit(code)
            _, status = os.waitpid(child, 0)
            if status:
                raise SystemExit("the lines could not be gathered")
            self._read()
        return self

    def _files_of_tests(self) -> list[str]:
        found: list[Path] = []
        for place in self.choice.files:
            path = ROOT / place
            found += [path] if path.is_file() else path.rglob("test_*.py")
        names = {str(path.relative_to(ROOT)) for path in found}
        return sorted(names - LONGEST_FILES if self.choice.in_programs else names)

    def _forget(self, files: set[str]) -> None:
        def stays(test: str) -> bool:
            return test.partition("::")[0] not in files

        self.digests = {file: digest for file, digest in self.digests.items() if file not in files}
        self.seconds = {test: seconds for test, seconds in self.seconds.items() if stays(test)}
        for lines in self.lines.values():
            for line, tests in lines.items():
                lines[line] = [test for test in tests if stays(test)]

    def _follow_sources(self) -> None:
        for file, old in self.sources.items():
            new = (SOURCE / file).read_text() if (SOURCE / file).exists() else ""
            if new == old:
                continue
            self.sources[file] = new
            known, self.lines[file] = self.lines.get(file, {}), {}
            same = SequenceMatcher(None, old.splitlines(), new.splitlines(), autojunk=False)
            for change, first, last, there, until in same.get_opcodes():
                if change in ("equal", "replace"):
                    for before, after in zip(range(first, last), range(there, until), strict=False):
                        if before + 1 in known:
                            self.lines[file][after + 1] = known[before + 1]

    def _gather(self, files: list[str]) -> None:
        import coverage

        included = [str(SOURCE / one / "*") for one in TRACED]
        noted = KEPT / "noted"
        if self.choice.in_programs:
            shutil.rmtree(noted, ignore_errors=True)
            noted.mkdir(parents=True)
            os.environ |= {
                "LINES_NOTED": str(noted),
                "LINES_OF": os.pathsep.join(included),
                "PYTHONPATH": str(IN_PROGRAMS),
            }
        tracer = coverage.Coverage(data_file=None, include=included)
        gatherer = Gatherer(tracer, self.choice)
        before = set(sys.modules)
        tracer.start()
        pytest.main([*OPTIONS, *files], plugins=[gatherer])
        tracer.stop()
        data = tracer.get_data()
        self.seconds |= gatherer.seconds
        for one in data.measured_files():
            for line, by in data.contexts_by_lineno(one).items():
                self._add(one, line, (test for test in by if test in gatherer.seconds or not test))
        for file in noted.glob("*.json") if self.choice.in_programs else ():
            record = json.loads(file.read_text())
            by = gatherer.started_by(record["test"])
            for one, lines in record["lines"].items():
                for line in lines:
                    self._add(one, line, by)
        imported = [one for one in sys.modules if one not in before and not _is_ours(one)]
        # In the order in which they were imported: some parts of libraries cannot be imported before the others.
        self.modules = list(dict.fromkeys([*self.modules, *imported]))

    def _add(self, path: str, line: int, tests: Any) -> None:
        file = str(Path(path).relative_to(SOURCE))
        self.sources.setdefault(file, (SOURCE / file).read_text())
        known = self.lines.setdefault(file, {}).setdefault(line, [])
        known += [test for test in tests if test not in known]

    # --- which to ask ---

    def tests_of(self, mutant: Mutant) -> list[str]:
        """Those of the module's own file first, then of the same topic or name, of these the fastest. What runs when the
        module is imported is asked of all who use the module."""
        lines = self.lines.get(mutant.file, {})
        first, last = mutant.lines
        found = {test for line in range(first, last + 1) for test in lines.get(line, ())}
        if not found or mutant.on_import or "" in found:
            found |= {test for tests in lines.values() for test in tests}
        found.discard("")
        folder, _, name = mutant.file.removesuffix(".py").rpartition("/")
        about_reprs: set[str] = set()
        if mutant.on_import:
            # Who only looks at what an import has made runs no line of it.
            found |= {test for test in self.seconds if f"/test_{name}.py::" in test}
        about_reprs = {test for test in found if "/test_secrets_in_reprs.py::" in test}
        if not found:
            found = {
                test for test in self.seconds if self.choice.in_programs or test.startswith(f"tests/{folder}")
            }
        # Hundreds of tests of programs run most lines, so their names say which may be about this one.
        words = _words(mutant.file.removesuffix(".py")) | _words(mutant.change.partition(":")[0])

        def rank(test: str) -> tuple[int, float, str]:
            path = test.partition("::")[0]
            its_own = path.endswith(f"/test_{name}.py")
            near = name in path.rpartition("/")[2] or folder.rpartition("/")[2] in path.split("/")
            # It imports every module, so it is slow, and the only one that sees `repr=False` gone.
            first = mutant.change.endswith("False -> True") and test in about_reprs
            shared = len(words & _words(test)) if self.choice.in_programs else 0
            return -(200 * (its_own or first) + 100 * near + shared), self.seconds.get(test, 1.0), test

        asked: list[str] = []
        together = 0.0
        for test in sorted(found, key=rank):
            seconds = self.seconds.get(test, 1.0)
            if together + seconds <= self.choice.together or not asked:
                together += seconds
                asked.append(test)
        return asked


def _digest(file: str) -> str:
    return sha256((ROOT / file).read_bytes()).hexdigest() if (ROOT / file).exists() else ""


def _words(name: str) -> set[str]:
    """Without their endings: `replays` is as `replayed`."""
    return {word[:5] for word in re.findall(r"[a-z]{4,}", name.lower())} - {"test_", "tests", "useca"}


class Gatherer:
    """A plugin of pytest that notes what each test runs, and how long it takes."""

    def __init__(self, tracer: Any, choice: Choice) -> None:
        self._tracer, self._choice = tracer, choice
        self.seconds: dict[str, float] = {}
        self._share_a_program: list[str] = []

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [one for one in items if not self._choice.without & set(getattr(one, "fixturenames", ()))]
        if self._choice.in_programs:
            # What needs neither has been asked already.
            items[:] = [one for one in items if not _is_asked_first(one)]
        else:
            items[:] = [one for one in items if "postgres" not in one.nodeid]
        self._share_a_program = [one.nodeid for one in items if "served" in getattr(one, "fixturenames", ())]

    def started_by(self, current: str) -> list[str]:
        """By which tests, as pytest tells the programs that it starts: `tests/…::test_name (call)`."""
        test, _, when = current.rpartition(" ")
        if test in self._share_a_program and when == "(setup)":
            return [one for one in self._share_a_program if one in self.seconds]
        return [test] if test in self.seconds else []

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._tracer.switch_context(item.nodeid)
        began = time.perf_counter()
        try:
            return (yield)
        finally:
            self.seconds[item.nodeid] = round(time.perf_counter() - began, 4)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            print(f"fails without any bug: {report.nodeid}", file=sys.stderr)
            self.seconds.pop(report.nodeid, None)


def _is_asked_first(item: pytest.Item) -> bool:
    among = any(item.nodeid.startswith((place + "/", place + "::")) for place in QUICK.files)
    return (
        among and not QUICK.without & set(getattr(item, "fixturenames", ())) and "postgres" not in item.nodeid
    )


def _is_ours(module: str) -> bool:
    place = getattr(sys.modules[module], "__file__", None)
    return place is None or (place.startswith(str(ROOT)) and "site-packages" not in place)
