"""Plants bugs and looks whether a test notices: the survivors show what nothing asks for.

    python scripts/mutants.py                          all of core/ and usecases/, which takes hours
    python scripts/mutants.py --sample 200 --seed 7    as many, the same ones each time
    python scripts/mutants.py core/limits.py           one file, or a folder

A bug is one operator, constant, condition or statement that is another one. Only the tests that run its line are asked,
the fastest first. Nothing is written into the sources: each bug is planted while its module is imported, in a process of
its own. Which test runs which line is gathered once and kept in `.mutants/` with what was found, so that the next run goes
on where this one ended; `--fresh` forgets both. What no test can notice is listed with the reason in `mutants.toml`.

Tests that start programs or need Postgres or a browser are not asked: a bug is planted in one process, and is to be
noticed close to where it is.
"""

import argparse
import ast
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import random
import resource
import signal
import sys
import time
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "postern"
KEPT = ROOT / ".mutants"
FOLDERS = ("core", "usecases")
TRACED = (*FOLDERS, "stores")
"""What may be asked for by name: a store is a sentence of SQL, and most of its bugs are the database's to notice."""
TESTS = (
    "tests/core",
    "tests/presets",
    "tests/usecases",
    "tests/stores",
    "tests/surfaces/rest/test_signing_in.py",
    "tests/test_docs.py",
    "tests/test_nothing_forgotten.py",
)
# What starts a program, which would run without the bug, or a server.
LEFT_OUT = {
    "start_program",
    "served",
    "page",
    "browser",
    "postgres",
    "postgres_url",
    "migrated_url",
    "own_postgres",
}
LONGEST_ASKED = 40.0
"""Seconds of tests for one bug, as long as they take without it: a line that everything runs is not asked of everything."""
MEMORY = 4 << 30

OPTIONS = ["-q", "--no-header", "-p", "no:cacheprovider", "-o", "addopts=--import-mode=importlib"]
OPTIONS += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
OPTIONS += ["-p", "anyio", "-p", "_hypothesis_pytestplugin", "--hypothesis-seed=0"]


# --- the bugs --------------------------------------------------------------------------------------------------------

SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}


@dataclass(frozen=True)
class Edit:
    """One place of a tree holds something else."""

    holder: Any
    place: str | int
    new: object

    def swap(self) -> "Edit":
        """Done; and how to take it back."""
        if isinstance(self.place, int):
            old, self.holder[self.place] = self.holder[self.place], self.new
        else:
            old = getattr(self.holder, self.place)
            setattr(self.holder, self.place, self.new)
        return Edit(self.holder, self.place, old)


@dataclass(frozen=True)
class Mutant:
    file: str
    """As in `core/limits.py`."""
    line: int
    change: str
    """The function it is in, and how it reads without and with the bug; so `mutants.toml` names it, too."""
    lines: tuple[int, int]
    on_import: bool
    """It runs when the module is imported."""
    number: int
    """Which of the file's bugs it is."""


@dataclass
class Planter:
    """Walks one module and finds what could be planted in it."""

    file: str
    tree: ast.Module
    mutants: list[Mutant] = field(default_factory=list)
    edits: list[Edit] = field(default_factory=list)

    def walk(self) -> "Planter":
        self._body("", self.tree.body)
        return self

    def _offer(self, shown: ast.AST, edit: Edit, around: ast.stmt, where: str) -> None:
        before = _text(shown)
        undo = edit.swap()
        after = _text(
            edit.new if isinstance(edit.new, ast.stmt | ast.expr) and edit.place != "operand" else shown
        )
        undo.swap()
        body = getattr(around, "body", None)
        last = body[0].lineno - 1 if body else around.end_lineno
        first = getattr(shown, "lineno", around.lineno)
        self.mutants.append(
            Mutant(
                self.file,
                first,
                f"{where or 'module'}: {before} -> {after}",
                (min(first, around.lineno), max(last or first, first)),
                not where or isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef),
                len(self.mutants),
            )
        )
        self.edits.append(edit)

    def _body(self, where: str, body: list[ast.stmt]) -> None:
        for number, statement in enumerate(body):
            self._statement(body, number, statement, where)

    def _statement(self, body: list[ast.stmt], number: int, node: ast.stmt, where: str) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for default in [*node.args.defaults, *(one for one in node.args.kw_defaults if one)]:
                self._expression(default, node, where)
            self._body(f"{where}.{node.name}".lstrip("."), node.body)
            return
        if isinstance(node, ast.ClassDef):
            self._body(f"{where}.{node.name}".lstrip("."), node.body)
            return
        if isinstance(node, ast.Import | ast.ImportFrom | ast.Assert | ast.Pass):
            return
        if _is_docstring(node) or _is_about_types(node) or _is_logging(node):
            return

        if (other := _instead_of(node)) is not None:
            self._offer(node, Edit(body, number, ast.copy_location(other, node)), node, where)
        if isinstance(node, ast.If | ast.While):
            self._condition(node, node, where)
        for part in ast.iter_child_nodes(node):
            if isinstance(part, ast.expr) and part is not getattr(node, "annotation", None):
                self._expression(part, node, where)
            elif isinstance(part, ast.withitem):
                self._expression(part.context_expr, node, where)
            elif isinstance(part, ast.match_case):
                if part.guard is not None:
                    self._expression(part.guard, node, where)
                self._body(where, part.body)
            elif isinstance(part, ast.ExceptHandler):
                self._body(where, part.body)
        for inner in ("body", "orelse", "finalbody"):
            statements = getattr(node, inner, None)
            if isinstance(statements, list):
                self._body(where, statements)

    def _condition(self, node: ast.If | ast.While | ast.IfExp, around: ast.stmt, where: str) -> None:
        values = (False,) if isinstance(node, ast.While) else (True, False)  # it would never end
        for value in values if not isinstance(node.test, ast.Constant) else ():
            constant = ast.copy_location(ast.Constant(value), node.test)
            self._offer(node.test, Edit(node, "test", constant), around, where)

    def _expression(self, node: ast.expr, around: ast.stmt, where: str) -> None:
        if isinstance(node, ast.JoinedStr):
            return  # words
        if isinstance(node, ast.Compare):
            for number, operator in enumerate(node.ops):
                if other := SWAPPED.get(type(operator)):
                    self._offer(node, Edit(node.ops, number, other()), around, where)
        elif isinstance(node, ast.BoolOp | ast.BinOp):
            if other := SWAPPED.get(type(node.op)):
                self._offer(node, Edit(node, "op", other()), around, where)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            # Taken away by another one: what holds this node need not be known.
            twice = ast.copy_location(ast.UnaryOp(ast.Not(), node.operand), node)
            self._offer(node, Edit(node, "operand", twice), around, where)
        elif isinstance(node, ast.IfExp):
            self._condition(node, around, where)
        elif isinstance(node, ast.Constant) and (value := _another(node.value)) is not None:
            self._offer(node, Edit(node, "value", value), around, where)
        for part in ast.iter_child_nodes(node):
            if isinstance(part, ast.expr):
                self._expression(part, around, where)
            elif isinstance(part, ast.keyword):
                self._expression(part.value, around, where)
            elif isinstance(part, ast.comprehension):
                for inner in (part.iter, *part.ifs):
                    self._expression(inner, around, where)


def _instead_of(node: ast.stmt) -> ast.stmt | None:
    match node:
        case ast.Raise() | ast.AugAssign():
            return ast.Pass()
        case ast.Expr() if not isinstance(node.value, ast.Yield):
            return ast.Pass()
        case ast.Continue():
            return ast.Break()
        case ast.Break():
            return ast.Continue()
        case ast.Return() if node.value is not None and not _is_none(node.value):
            return ast.Return(ast.Constant(None))
    return None


def _another(value: object) -> object:
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str() if value and " " not in value:
            return value + "_"
        case bytes() if value:
            return value + b"_"
    return None  # nothing, and sentences: what exactly they say is nobody's promise


def _text(node: ast.AST) -> str:
    return " ".join(ast.unparse(node).split())[:160]


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_about_types(node: ast.stmt) -> bool:
    """`Kind = Literal["a", "b"]`, `T = TypeVar("T")`, `__slots__ = …`."""
    if isinstance(node, ast.If):
        return "TYPE_CHECKING" in ast.unparse(node.test)
    if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
        return False
    target = node.targets[0] if isinstance(node, ast.Assign) else node.target
    text = ast.unparse(node.value)
    return (isinstance(target, ast.Name) and target.id in ("__slots__", "__all__")) or text.startswith(
        ("Literal[", "TypeVar(", "ParamSpec(", "Callable[", "Annotated[", "dict[", "list[", "tuple[")
    )


def _is_logging(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and ast.unparse(node.value.func).startswith("log.")
    )


def parsed(file: str) -> Planter:
    return Planter(file, ast.parse((SOURCE / file).read_text(), file)).walk()


def planted(mutant: Mutant) -> CodeType:
    planter = parsed(mutant.file)
    planter.edits[mutant.number].swap()
    return compile(ast.fix_missing_locations(planter.tree), str(SOURCE / mutant.file), "exec")


# --- which test runs which line --------------------------------------------------------------------------------------


@dataclass
class Coverage:
    seconds: dict[str, float]
    """Of each test."""
    lines: dict[str, dict[int, list[str]]]
    """Of each file: which tests run a line."""
    modules: list[str]
    """Everything that the tests import and that is not Postern's: it is imported once, for all bugs."""

    def tests_of(self, mutant: Mutant) -> list[str]:
        """Those of the same topic or name first, of these the fastest. What runs when the module is imported is asked
        of all who use the module."""
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
            found = {test for test in self.seconds if test.startswith(f"tests/{folder}")}

        def rank(test: str) -> tuple[bool, float, str]:
            path = test.partition("::")[0]
            near = name in path.rpartition("/")[2] or folder.rpartition("/")[2] in path.split("/")
            # It imports every module, so it is slow, and the only one that sees `repr=False` gone.
            first = mutant.change.endswith("False -> True") and test in about_reprs
            return not (near or first), self.seconds.get(test, 1.0), test

        asked: list[str] = []
        together = 0.0
        for test in sorted(found, key=rank):
            together += self.seconds.get(test, 1.0)
            if together > LONGEST_ASKED and asked:
                break
            asked.append(test)
        return asked


class Gatherer:
    """A plugin of pytest that notes what each test runs, and how long it takes."""

    def __init__(self, tracer: Any) -> None:
        self.tracer = tracer
        self.seconds: dict[str, float] = {}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [one for one in items if not LEFT_OUT & set(getattr(one, "fixturenames", ()))]
        items[:] = [one for one in items if "postgres" not in one.nodeid]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.tracer.switch_context(item.nodeid)
        began = time.perf_counter()
        try:
            return (yield)
        finally:
            self.seconds[item.nodeid] = round(time.perf_counter() - began, 4)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            print(f"fails without any bug: {report.nodeid}", file=sys.stderr)
            self.seconds.pop(report.nodeid, None)


def _is_ours(module: str) -> bool:
    place = getattr(sys.modules[module], "__file__", None)
    return place is None or (place.startswith(str(ROOT)) and "site-packages" not in place)


def gather() -> Coverage:
    """Of the tests of which it is not known yet."""
    file = KEPT / "coverage.json"
    known: dict[str, Any] = (
        json.loads(file.read_text())
        if file.exists()
        else {"tests": [], "seconds": {}, "lines": {}, "modules": []}
    )
    missing = [one for one in TESTS if one not in known["tests"]]
    if missing:
        print("gathering which test runs which line …", flush=True)
        KEPT.mkdir(exist_ok=True)
        if (child := os.fork()) == 0:  # nothing of Postern may be imported here
            _gather(missing, known)
            known["tests"] += missing
            file.write_text(json.dumps(known))
            os._exit(0)
        os.waitpid(child, 0)
        known = json.loads(file.read_text())
    lines = {
        one: {int(line): tests for line, tests in found.items()} for one, found in known["lines"].items()
    }
    return Coverage(known["seconds"], lines, known["modules"])


def _gather(tests: list[str], known: dict[str, Any]) -> None:
    import coverage

    tracer = coverage.Coverage(data_file=None, include=[str(SOURCE / one / "*") for one in TRACED])
    gatherer = Gatherer(tracer)
    before = set(sys.modules)
    tracer.start()
    pytest.main([*OPTIONS, *tests], plugins=[gatherer])
    tracer.stop()
    data = tracer.get_data()
    known["seconds"] |= gatherer.seconds
    for one in data.measured_files():
        lines = known["lines"].setdefault(str(Path(one).relative_to(SOURCE)), {})
        for line, by in data.contexts_by_lineno(one).items():
            lines.setdefault(str(line), []).extend(
                test for test in by if test in gatherer.seconds or not test
            )
    known["modules"] += [one for one in sys.modules if one not in before and not _is_ours(one)]


# --- one bug ---------------------------------------------------------------------------------------------------------


class Loader(importlib.machinery.SourceFileLoader):
    code: CodeType

    def get_code(self, fullname: str) -> CodeType:
        return self.code


class Finder(importlib.abc.MetaPathFinder):
    """Finds the one module that has the bug."""

    def __init__(self, mutant: Mutant) -> None:
        name = "postern." + mutant.file.removesuffix(".py").replace("/", ".")
        self._name = name.removesuffix(".__init__")
        self._path = SOURCE / mutant.file
        self._code = planted(mutant)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._name:
            return None
        loader = Loader(fullname, str(self._path))
        loader.code = self._code
        return importlib.util.spec_from_file_location(fullname, self._path, loader=loader)


class Asking:
    """A plugin of pytest: these tests, in this order; the first that fails is told."""

    def __init__(self, tests: list[str], told: int) -> None:
        self._order = {test: number for number, test in enumerate(tests)}
        self._told = told

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted(
            (one for one in items if one.nodeid in self._order), key=lambda one: self._order[one.nodeid]
        )

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            os.write(self._told, report.nodeid.encode())


def noticed(mutant: Mutant, coverage: Coverage) -> str:
    """By which test; empty where none notices it."""
    tests = coverage.tests_of(mutant)
    if not tests:
        return ""
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
            sys.meta_path.insert(0, Finder(mutant))
            files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
            code = int(pytest.main([*OPTIONS, "-x", *files], plugins=[Asking(tests, writing)]))
        finally:
            os._exit(code)
    os.close(writing)
    expected = sum(coverage.seconds.get(test, 1.0) for test in tests)
    code = _ended(child, time.monotonic() + 30 + 6 * expected)
    with open(reading, "rb") as told:
        by = told.read().decode().partition("tests/")[2]
    if code == 0:
        return ""
    return by or {-signal.SIGKILL: "time-out"}.get(code, "the module cannot be imported")


def _ended(child: int, until: float) -> int:
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            break
        if time.monotonic() > until:
            with suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
        time.sleep(0.02)
    with suppress(ProcessLookupError):  # what it left behind
        os.killpg(child, signal.SIGKILL)
    return code


# --- all of them -----------------------------------------------------------------------------------------------------


class Equivalents:
    """What no test can notice, by file and change, with the reason. Under `*` stands what holds in every file, without
    the function's name."""

    def __init__(self) -> None:
        self._known = tomllib.loads((ROOT / "scripts" / "mutants.toml").read_text())

    def __contains__(self, mutant: Mutant) -> bool:
        anywhere = mutant.change.partition(": ")[2]
        return mutant.change in self._known.get(mutant.file, {}) or anywhere in self._known.get("*", {})


def files(asked: list[str]) -> list[str]:
    known = sorted(
        str(one.relative_to(SOURCE))
        for folder in (TRACED if asked else FOLDERS)
        for one in (SOURCE / folder).rglob("*.py")
    )
    return [
        one
        for one in known
        if not asked or any(one == name or one.startswith(name.rstrip("/") + "/") for name in asked)
    ]


class Results:
    """What was found about each bug, for as long as its file stays as it is."""

    def __init__(self) -> None:
        self._file = KEPT / "results.json"
        self._known: dict[str, dict[str, str]] = (
            json.loads(self._file.read_text()) if self._file.exists() else {}
        )

    def of(self, mutant: Mutant) -> str | None:
        """By which test it is known to be noticed. One that survived is asked again: there may be a new test."""
        return self._known.get(self._key(mutant), {}).get(str(mutant.number)) or None

    def keep(self, mutant: Mutant, by: str) -> None:
        self._known.setdefault(self._key(mutant), {})[str(mutant.number)] = by
        self._file.write_text(json.dumps(self._known, indent=0))

    def _key(self, mutant: Mutant) -> str:
        return f"{mutant.file} {sha256((SOURCE / mutant.file).read_bytes()).hexdigest()[:16]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "files", nargs="*", help="under src/postern: core/limits.py, usecases/calls; default: all"
    )
    parser.add_argument("--sample", type=int, help="so many of them")
    parser.add_argument("--seed", type=int, default=1, help="another sample")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="at once")
    parser.add_argument("--fresh", action="store_true", help="forget what earlier runs found")
    asked = parser.parse_args()
    os.chdir(ROOT)
    os.environ |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    sys.dont_write_bytecode = False
    if asked.fresh:
        for one in ("coverage.json", "results.json"):
            (KEPT / one).unlink(missing_ok=True)
    mutants = [mutant for file in files(asked.files) for mutant in parsed(file).mutants]
    if asked.sample and asked.sample < len(mutants):
        chosen = random.Random(asked.seed).sample(range(len(mutants)), asked.sample)
        mutants = [mutants[number] for number in sorted(chosen)]
    coverage = gather()
    for name in coverage.modules:
        with suppress(Exception):
            importlib.import_module(name)
    known, results = Equivalents(), Results()
    print(f"{len(mutants)} bugs in {len({one.file for one in mutants})} files", flush=True)

    def tried(mutant: Mutant) -> tuple[Mutant, str]:
        if mutant in known:
            return mutant, "equivalent"
        return mutant, results.of(mutant) or noticed(mutant, coverage)

    counted: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    survivors: list[Mutant] = []
    with ThreadPoolExecutor(asked.jobs) as pool:
        for mutant, by in pool.map(tried, mutants):
            if by == "equivalent":
                continue
            results.keep(mutant, by)
            counted[mutant.file][0] += bool(by)
            counted[mutant.file][1] += 1
            if not by:
                survivors.append(mutant)
                print(f"survives  {mutant.file}:{mutant.line}  {mutant.change}", flush=True)
    killed, whole = (sum(one[place] for one in counted.values()) for place in (0, 1))
    worst = sorted(counted.items(), key=lambda one: one[1][0] - one[1][1])[:10]
    for file, (seen, of) in worst:
        if seen < of:
            print(f"{of - seen:4} of {of:4} survive in {file}")
    print(f"{killed} of {whole} noticed ({killed / max(1, whole):.1%}), {len(mutants) - whole} equivalent")


if __name__ == "__main__":
    main()
