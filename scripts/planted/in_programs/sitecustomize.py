"""Python imports this first, in every program that has this folder on its PYTHONPATH: the gateway, the server whose forks
most programs of the tests are, and pytest itself. It plants the bug that `PLANTED_BUG` holds; or it notes which lines the
program runs, in the folder that `LINES_NOTED` names."""

import importlib.abc
import importlib.machinery
import importlib.util
import json
import marshal
import os
import time
from collections.abc import Sequence
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any


class Loader(importlib.machinery.SourceFileLoader):
    code: CodeType

    def get_code(self, fullname: str) -> CodeType:
        return self.code


class Finder(importlib.abc.MetaPathFinder):
    """Finds the one module that has the bug."""

    def __init__(self, name: str, path: str, code: CodeType) -> None:
        self._name, self._path, self._code = name, path, code

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._name:
            return None
        loader = Loader(fullname, self._path)
        loader.code = self._code
        return importlib.util.spec_from_file_location(fullname, self._path, loader=loader)


class Lines:
    """Those that this process runs. A fork is a process of its own, and begins without what was run before it."""

    def __init__(self, folder: Path, sources: list[str]) -> None:
        self._folder, self._sources = folder, sources

    def begin(self) -> None:
        import coverage

        self._tracer: Any = coverage.Coverage(data_file=None, include=self._sources, messages=False)
        self._tracer.set_option("run:disable_warnings", ["no-data-collected", "module-not-measured"])
        self._tracer.start()

    def begin_in_fork(self) -> None:
        self._tracer.stop()
        self.begin()

    def write_at_end_of_fork(self) -> None:
        from multiprocessing.util import Finalize

        Finalize(None, self.write, exitpriority=0)

    def write(self) -> None:
        self._tracer.stop()
        data = self._tracer.get_data()
        lines = {file: data.lines(file) for file in data.measured_files()}
        if lines:
            noted = {"test": os.environ.get("PYTEST_CURRENT_TEST", ""), "lines": lines}
            name = f"{os.getpid()}-{time.monotonic_ns()}"
            self._folder.joinpath(name + ".unfinished").write_text(json.dumps(noted))
            self._folder.joinpath(name + ".unfinished").rename(self._folder / (name + ".json"))


def note_lines(folder: Path, sources: list[str]) -> None:
    import atexit
    from multiprocessing.util import register_after_fork

    lines = Lines(folder, sources)
    lines.begin()
    os.register_at_fork(after_in_child=lines.begin_in_fork)
    atexit.register(lines.write)
    # A process that multiprocessing makes does not come to what is registered for the interpreter's end.
    register_after_fork(lines, Lines.write_at_end_of_fork)


if bug := os.environ.get("PLANTED_BUG"):
    import sys

    sys.meta_path.insert(0, Finder(*marshal.loads(Path(bug).read_bytes())))
elif noted := os.environ.get("LINES_NOTED"):
    note_lines(Path(noted), os.environ["LINES_OF"].split(os.pathsep))
