"""Draws places of `src/postern` at random, makes one mistake at each in a copy, and runs the tests that are nearest to it.

    python scripts/mutants.py 2 60 7                             two lanes, 60 mistakes: always the same ones for seed 7
    python scripts/mutants.py 2 20 7 core/watch/ usecases/       only in these files and folders of src/postern

The reader judges one that survives: a test is lacking, or it changes nothing, or a test that was not run notices it.
"""

import ast
import difflib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from itertools import accumulate
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "postern"
LEFT_OUT = ("stores/sql/migrations/", "workflows/example/")
LONGEST, HANGS = 150, 60
"""Seconds: for all tests of one mistake, and for one test (a mistake that keeps it for longer is noticed)."""
LAST = [f"tests/test_{name}.py" for name in ("nothing_forgotten", "settings", "matrix", "docs")]
KINDS = ("operator", "constant", "condition", "argument", "statement")
_PAIRS = "Eq NotEq, Lt LtE, Gt GtE, Is IsNot, In NotIn, And Or, Add Sub, Mult FloorDiv, BitAnd BitOr, LShift RShift"
OPPOSITE = {one: two for pair in _PAIRS.split(", ") for one, two in (pair.split(), pair.split()[::-1])}


class Mistake(NamedTuple):
    file: str
    kind: str
    text: str
    """The whole file with the mistake."""


def but(node: Any, **fields: object) -> Any:
    return type(node)(**{**dict(ast.iter_fields(node)), **fields})


def opposite(operator: ast.AST) -> Any:
    return getattr(ast, OPPOSITE[type(operator).__name__])()


def mistakes_of(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Their kinds, and what stands there instead."""
    match node:
        case ast.Compare(ops=[op]):
            yield "operator", but(node, ops=[opposite(op)])
        case ast.BinOp(op=op) if type(op).__name__ in OPPOSITE:
            yield "operator", but(node, op=opposite(op))
        case ast.BoolOp(op=op, values=values):
            yield "operator", but(node, op=opposite(op))
            for one in values:
                yield "condition", but(node, values=[other for other in values if other is not one])
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield "operator", operand
        case ast.Constant(value=bool(value)):
            yield "constant", ast.Constant(not value)
        case ast.Constant(value=int(value) | float(value)):
            yield "constant", ast.Constant(value + 1)
        case ast.Constant(value=str(value) | bytes(value)) if " " not in repr(
            value
        ):  # tests that repeat sentences prove nothing
            yield "constant", ast.parse(f"{repr(value)[:-1]}x{repr(value)[-1]}", mode="eval").body
        case ast.Call(args=arguments, keywords=keywords):
            if len(arguments) > 1 and not any(isinstance(one, ast.Starred) for one in arguments[:2]):
                yield "argument", but(node, args=[arguments[1], arguments[0], *arguments[2:]])
            for named in keywords:
                yield "argument", but(node, keywords=[other for other in keywords if other is not named])
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            yield "statement", ast.Return(ast.Constant(None))
        case ast.Expr() | ast.AugAssign() | ast.Raise() | ast.Break() | ast.Continue() | ast.Delete():
            yield "statement", ast.Pass()
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield "statement", ast.Pass()
        case _:
            pass


def everywhere(tree: ast.AST) -> Iterator[tuple[Any, str, ast.AST]]:
    """What is no type, no documentation and no f-string (Python 3.11 says wrong places there), with each of its mistakes."""
    for name, value in ast.iter_fields(tree):
        for node in value if isinstance(value, list) else [value]:
            match node:
                case (
                    ast.JoinedStr()
                    | ast.Subscript(value=ast.Name(id="Literal"))
                    | ast.Expr(value=ast.Constant())
                ):
                    continue
                case ast.AST() if name not in ("annotation", "returns"):
                    yield from ((node, *one) for one in mistakes_of(node))
                    if name in ("test", "ifs") and isinstance(node, ast.expr):
                        yield node, "condition", ast.UnaryOp(ast.Not(), node)
                    yield from everywhere(node)


@cache
def mistakes(file: str) -> dict[str, list[tuple[int, int, bytes]]]:
    """By their kind: the bytes of the file, and what stands there instead."""
    text = (SOURCE / file).read_bytes()
    starts = [0, *accumulate(map(len, text.splitlines(keepends=True)))]
    found: dict[str, list[tuple[int, int, bytes]]] = {kind: [] for kind in KINDS}
    for node, kind, other in everywhere(ast.parse(text)):
        new = ast.unparse(ast.fix_missing_locations(other)).encode()
        places = (
            starts[node.lineno - 1] + node.col_offset,
            starts[node.end_lineno - 1] + node.end_col_offset,
        )
        found[kind].append((*places, new if isinstance(other, ast.stmt) else b"(" + new + b")"))
    return found


def draw(count: int, seed: int, *wanted: str) -> list[Mistake]:
    asked = tuple(one.removeprefix("src/postern/") for one in wanted) or ("",)
    files = sorted(str(one.relative_to(SOURCE)) for one in SOURCE.rglob("*.py"))
    files = [one for one in files if one.startswith(asked) and not one.startswith(LEFT_OUT)]
    sizes = [(SOURCE / one).stat().st_size for one in files]
    chance, drawn = random.Random(seed), dict[Mistake, None]()
    for _ in range(20 * count):  # small files have only so many
        file, kind = chance.choices(files, sizes)[0], chance.choice(KINDS)
        if len(drawn) < count and (places := mistakes(file)[kind]):
            begin, end, new = chance.choice(places)
            text = (SOURCE / file).read_bytes()
            made = text[:begin] + new + text[end:]
            with suppress(SyntaxError):  # a pattern of a match, for one
                if ast.dump(ast.parse(made)) != ast.dump(ast.parse(text)):
                    drawn[Mistake(file, kind, made.decode())] = None
    return [*drawn]


def module(file: Path | str) -> str:
    return ".".join(Path("postern", file).with_suffix("").parts)


@cache
def imported(file: Path) -> set[str]:
    nodes = [one for one in ast.walk(ast.parse(file.read_bytes())) if isinstance(one, ast.ImportFrom)]
    return {f"{node.module}{end}" for node in nodes for end in ("", *(f".{one.name}" for one in node.names))}


def words(path: str) -> set[str]:
    return {one.rstrip("s") for one in re.split(r"[/_.]", path)} - {"test", "py"}


def nearest(file: str) -> list[str]:
    """Files of tests, the nearest first: that import it, or what imports it, and whose folders and names say its topic."""
    users = {module(one.relative_to(SOURCE)) for one in SOURCE.rglob("*.py") if module(file) in imported(one)}
    near = dict[str, int]()
    for test in sorted((ROOT / "tests").rglob("test_*.py")):
        place = str(test.relative_to(ROOT))
        points = 3 * (module(file) in imported(test)) + bool(users & imported(test))
        near[place] = points + 2 * len(words(file) & words(place))
    return sorted((one for one in near if near[one] and one not in LAST), key=lambda one: -near[one])


class Lane:
    """A copy of the repository, in which one mistake after the other is made."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        self._running: subprocess.Popen[str] | None = None
        self._failing: set[str] = set()
        """Tests that fail without a mistake, too."""
        for one in ROOT.iterdir():
            if one.name in ("src", "tests", ".mypy_cache"):
                shutil.copytree(one, folder / one.name, ignore=shutil.ignore_patterns("__pycache__"))
            elif one.name != ".git":
                (folder / one.name).symlink_to(one)

    def _run(self, seconds: float, *command: str) -> tuple[int | None, str]:
        self._running = subprocess.Popen(
            [sys.executable, "-m", *command], cwd=self._folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env={**os.environ, "PYTHONPATH": str(self._folder / "src")},
            start_new_session=True,  # with all that its tests start
        )  # fmt: skip
        try:
            said, _ = self._running.communicate(timeout=max(seconds, 1))
            return self._running.returncode, said
        except subprocess.TimeoutExpired:
            return None, ""
        finally:
            self.end()

    def _pytest(self, seconds: float, tests: list[str]) -> tuple[int | None, str]:
        options = ["-qx", "-rfE", "--tb=no", "-p", "no:cacheprovider", "-o", f"faulthandler_timeout={HANGS}"]
        return self._run(seconds, "pytest", *options, *(f"--deselect={one}" for one in self._failing), *tests)

    def end(self) -> None:
        with suppress(ProcessLookupError):
            if self._running:
                os.killpg(self._running.pid, signal.SIGKILL)

    def judge(self, mistake: Mistake) -> tuple[str, str]:
        """Whether a test notices it; which one, or which were run."""
        source, end = self._folder / "src" / "postern" / mistake.file, time.monotonic() + LONGEST
        right, tests, run = source.read_bytes(), nearest(mistake.file), list[str]()
        try:
            for step in (tests[:6], tests[6:24], LAST):
                while step:
                    source.write_text(mistake.text, "utf-8")
                    code, said = self._pytest(end - time.monotonic(), step)
                    source.write_bytes(right)
                    if code is None:
                        return "CUT SHORT", f"after {LONGEST} s in {' '.join(run + step)}"
                    failed = re.findall(r"^(?:FAILED|ERROR) (tests/.+?)(?: - .*)?$", said, re.MULTILINE)
                    if code not in (0, 5) and self._pytest(LONGEST, failed[:1] or step)[0] in (0, 4):
                        return "noticed", f"by {failed[0] if failed else 'the end of pytest'}"
                    self._failing |= {*failed}
                    if not failed:
                        break
                run += step
            source.write_text(mistake.text, "utf-8")
            by_mypy = self._run(LONGEST, "mypy", "--no-error-summary", "src")[0] == 1
            return ("noticed", "by mypy") if by_mypy else ("SURVIVED", " ".join(run))
        finally:
            source.write_bytes(right)


def main(lanes: str, count: str, seed: str, *files: str) -> None:
    free, counted = SimpleQueue[Lane](), Counter[tuple[str, str]]()

    def judged(mistake: Mistake) -> tuple[Mistake, str, str]:
        lane = free.get()
        try:
            return mistake, *lane.judge(mistake)
        finally:
            free.put(lane)

    with TemporaryDirectory() as folder:
        all_lanes = [Lane(Path(folder, str(number))) for number in range(int(lanes))]
        pool = ThreadPoolExecutor(len(all_lanes))
        try:
            for lane in all_lanes:
                free.put(lane)
            for mistake, verdict, how in pool.map(judged, draw(int(count), int(seed), *files)):
                right = (SOURCE / mistake.file).read_text("utf-8").splitlines()
                diff = [*difflib.unified_diff(right, mistake.text.splitlines(), n=1, lineterm="")][2:]
                print(f"{verdict} {mistake.file} ({mistake.kind})", *diff, f" {how}\n", sep="\n", flush=True)
                parts = mistake.file.split("/")
                counted.update((part, verdict) for part in {f"seed {seed}", parts[0], "/".join(parts[:2])})
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            for lane in all_lanes:
                lane.end()
    for part in sorted({part for part, _ in counted}):
        print(
            f"{part:40}", *(f"{counted[part, one]:4} {one}" for one in ("noticed", "SURVIVED", "CUT SHORT"))
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
