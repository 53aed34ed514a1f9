"""The architecture, as rules that fail. Each rule is seen failing on a planted violation before it is
believed."""

import ast
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from configparser import ConfigParser
from functools import cache
from itertools import combinations, permutations
from pathlib import Path

import pytest

from support.program import clean_environment, run_command

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "postern"


def names(text: str) -> set[str]:
    return set(text.split())


CONTRACTS = ConfigParser()
CONTRACTS.read(ROOT / ".importlinter")
# From the top down; the siblings in one row do not know each other.
LAYERS = [
    row.split(" | ") for row in CONTRACTS["importlinter:contract:layers"]["layers"].strip().splitlines()
]
PAST_THE_USE_CASES = [
    module.removeprefix("postern.")
    for module in CONTRACTS["importlinter:contract:surfaces"]["forbidden_modules"].split()
]
BEHIND_THE_USE_CASES = {"store", "engine", "directory", "limits", "outbound", "workflow_files"}

# What `core` may know of the world outside: values and their arithmetic.
PURE = names(
    """__future__ base64 binascii bisect collections collections.abc dataclasses datetime decimal difflib enum fractions functools
    hashlib heapq hmac ipaddress itertools json math operator re statistics string struct textwrap types typing unicodedata urllib.parse zlib
    zoneinfo"""
)
PURE_PACKAGES = {"cryptography", "cronsim", "msgspec", "python_multipart"}
CHANCE = {
    "deliveries/delivery.py": {"random"},  # jitter: what failed together must not come back together
    "fetched.py": {"email.utils"},  # reads dates of HTTP
    "signatures/freshness.py": {"email.utils"},  # reads and writes dates of HTTP, and asks no clock here
    "identity.py": {"secrets", "uuid_utils"},  # new ids and tokens cannot be computed from anything
}
CLOCKS = {"now", "utcnow", "today"}
DOORS = {"open", "print", "input", "breakpoint", "eval", "exec", "__import__"}

PROVERS = {"core/signatures/credential.py", "core/signatures/signature.py"}

SHOWN = {"View", "Shape", "SettingRequest", "WebhookSettings", "InvocationSummary"}

LATE_IMPORTS: dict[str, set[str]] = {
    # While they are loaded, Ctrl-C is to end the program without a traceback.
    "__main__.py": {"postern.interruption", "postern.wiring.program"},
    # A command that a gateway answers loads no store, no web framework, no models of requests, no presets and no YAML.
    "wiring/program.py": {"postern.wiring.machine"},
    "surfaces/cli/develop/send.py": {"postern.surfaces.cli.develop.making"},
    "surfaces/cli/develop/senders.py": {"postern.usecases.signatures"},
    "surfaces/cli/webhooks/configuration.py": {
        "postern.surfaces.cli.webhooks.yaml_files",
        "postern.usecases.webhooks.file.schema",
    },
    # A gateway that makes no request loads no HTTP client before it serves.
    "outbound/fetch.py": {"postern.outbound.client"},
    "wiring/gateway.py": {"postern.outbound.mail"},
    # They need packages that not everybody has installed.
    "wiring/engines.py": {"postern.engines.dbos", "postern.engines.temporal"},
    "surfaces/mcp/__init__.py": {"postern.surfaces.mcp.sdk"},
}
"""The imports of our own that wait inside a function: file -> what it fetches late."""

Rule = Callable[[Path], list[str]]


def sources(package: Path) -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(package.rglob("*.py")):
        yield path.relative_to(package).as_posix(), parsed(path.read_text())


@cache
def parsed(text: str) -> ast.Module:
    """Each rule looks at all of it."""
    return ast.parse(text)


def module_of(file: str) -> str:
    return "postern." + file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return ["." * node.level + (node.module or "")]
    return []


def statements(within: ast.AST) -> Iterator[ast.AST]:
    """Where imports and functions are. What expressions hold is nine tenths of a tree."""
    todo = [within]
    while todo:
        node = todo.pop()
        yield node
        for part in ("body", "handlers", "orelse", "finalbody", "cases"):
            todo += getattr(node, part, ())


def name_of(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def core_is_pure(package: Path) -> list[str]:
    """`core` imports values only, and asks neither the clock nor the world."""
    found = []
    for file, tree in sources(package / "core"):
        for node in ast.walk(tree):
            for module in imported(node):
                known = module in PURE or module.partition(".")[0] in PURE_PACKAGES
                if (
                    not known
                    and not re.match(r"postern\.core(\.|$)", module)
                    and module not in CHANCE.get(file, ())
                ):
                    found.append(f"core/{file}:{node.lineno} imports {module}")
            if isinstance(node, ast.Name) and node.id in DOORS:
                found.append(f"core/{file}:{node.lineno} uses {node.id}")
            # A value called `now` is how time is handed in; `datetime.now` is how it would be read.
            if isinstance(node, ast.Attribute) and node.attr in CLOCKS and name_of(node.value) != "self":
                found.append(f"core/{file}:{node.lineno} reads the clock with .{node.attr}")
            if isinstance(node, ast.AsyncFunctionDef | ast.Await | ast.Global):
                found.append(f"core/{file}:{node.lineno} {type(node).__name__}")
    return found


def only_a_check_proves_a_caller(package: Path) -> list[str]:
    """A `VerifiedCall` is made where a credential or a signature is checked, and nowhere else. Elsewhere it
    may only be named."""
    found = []
    for file, tree in sources(package):
        if file in PROVERS:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                made = name_of(node.func) == "VerifiedCall"
                handed_on = name_of(node.func) != "isinstance" and any(
                    name_of(part) == "VerifiedCall" for part in node.args
                )
                if made or handed_on:
                    found.append(f"{file}:{node.lineno} makes a VerifiedCall")
            elif isinstance(node, ast.alias) and node.name == "VerifiedCall" and node.asname:
                found.append(f"{file}:{node.lineno} imports VerifiedCall as {node.asname}")
            elif isinstance(node, ast.Assign | ast.NamedExpr) and name_of(node.value) == "VerifiedCall":
                found.append(f"{file}:{node.lineno} renames VerifiedCall")
            elif isinstance(node, ast.ClassDef) and any(
                name_of(base) == "VerifiedCall" for base in node.bases
            ):
                found.append(f"{file}:{node.lineno} inherits from VerifiedCall")
    return found


def imports_stand_at_the_top(package: Path) -> list[str]:
    """What a file needs of us is said at its top; an import in a function hides a cycle, or names its reason
    in LATE_IMPORTS."""
    found = []
    for file, tree in sources(package):
        for function in statements(tree):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                for node in statements(function):
                    for module in imported(node):
                        if module.startswith(("postern", ".")) and module not in LATE_IMPORTS.get(file, ()):
                            found.append(f"{file}:{node.lineno} imports {module} inside a function")
    return found


def late_imports_close_no_circle(package: Path) -> list[str]:
    """What waits inside a function could stand at the top, if it were not for the time it takes."""
    found = []
    modules = {module_of(file) for file, _ in sources(package)}
    needs: dict[str, set[str]] = {}
    late: list[tuple[str, int, str, str]] = []
    for file, tree in sources(package):
        module = module_of(file)
        in_functions = {
            id(node): node
            for function in statements(tree)
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
            for node in statements(function)
        }
        for_types = {
            id(node)
            for block in statements(tree)
            if isinstance(block, ast.If) and name_of(block.test) == "TYPE_CHECKING"
            for node in statements(block)
        }
        needs[module] = set()
        for node in statements(tree):
            for one in imported(node):
                # `from postern.usecases import answers` names a module or something in one.
                inside = (
                    {f"{one}.{alias.name}" for alias in node.names}
                    if isinstance(node, ast.ImportFrom)
                    else ()
                )
                named = {each if each in modules else one for each in inside} or {one}
                if id(node) in in_functions:
                    late += [(file, getattr(node, "lineno", 0), module, each) for each in named]
                elif id(node) not in for_types:
                    needs[module] |= named
    for file, line, module, wanted in late:
        reached, todo = set[str](), [wanted]
        while todo:
            if (one := todo.pop()) in needs and one not in reached:
                reached.add(one)
                todo += needs[one]
        if module in reached:
            found.append(f"{file}:{line} imports {wanted}, which needs this file")
    return found


def nothing_is_imported_behind_our_back(package: Path) -> list[str]:
    """An import by name would pass every other rule: ours are written as imports."""
    found = []
    for file, tree in sources(package):
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Call)
                and name_of(node.func) in {"import_module", "__import__"}
                and node.args
            ):
                target = node.args[0]
                if not isinstance(target, ast.Constant) or str(target.value).startswith(("postern", ".")):
                    found.append(f"{file}:{node.lineno} imports {ast.unparse(target)} by name")
            if isinstance(node, ast.ImportFrom) and node.level:
                found.append(f"{file}:{node.lineno} imports relatively")
    return found


def surfaces_ask_use_cases(package: Path) -> list[str]:
    """What stands behind the use cases is in the gateway that surfaces hand on; it is not theirs to use."""
    found = []
    for file, tree in sources(package):
        if file.startswith("surfaces/"):
            for node in ast.walk(tree):
                if (
                    isinstance(node, ast.Attribute)
                    and node.attr in BEHIND_THE_USE_CASES
                    and name_of(node.value).lstrip("_") in {"gateway", "runtime"}
                ):
                    found.append(f"{file}:{node.lineno} reaches for {name_of(node.value)}.{node.attr}")
    return found


def a_folder_loads_none_of_its_files(package: Path) -> list[str]:
    """Whoever imports one file of a folder runs its ``__init__.py`` first: what that imports comes along, and is a circle."""
    found = []
    for file, tree in sources(package):
        if file.endswith("/__init__.py") and file != "workflows/__init__.py":  # that one is for users' files
            for node in tree.body:
                found += [
                    f"{file}:{node.lineno} imports {module}"
                    for module in imported(node)
                    if module.startswith(module_of(file) + ".")
                ]
    return found


def a_type_name_means_one_thing(package: Path) -> list[str]:
    """A class or an alias. What is asked and answered at the edge may be called as the concept of the core that it shows."""
    places: dict[str, list[str]] = {}
    for file, tree in sources(package):
        for node in statements(tree):
            if isinstance(node, ast.ClassDef):
                is_shown = {name_of(getattr(base, "value", base)) for base in node.bases} & SHOWN
                places.setdefault(node.name, []).append("" if is_shown else f"{file}:{node.lineno}")
            elif isinstance(node, ast.Assign) and re.match(r"_?[A-Z]\w*[a-z]", name_of(node.targets[0])):
                places.setdefault(name_of(node.targets[0]), []).append(f"{file}:{node.lineno}")
    found = []
    for name, where in places.items():
        others = [place for place in where if place]
        if len(others) > 1 or len(where) > 2:
            found.append(f"{' '.join(others)} are called {name}")
    return found


def sentences_begin_plainly(package: Path) -> list[str]:
    """Sentences of comments and messages begin with what they are about, or with what it does. Questions may begin with *What*."""
    begins = re.compile(r'(?:^\s*|# |"""|[.:!] )(?:Of|What|Whoever) (?![^.]*\?)')
    return [
        f"{file.relative_to(package).as_posix()}:{number} begins a sentence so: {line.strip()}"
        for file in sorted(package.rglob("*.py"))
        for number, line in enumerate(file.read_text("utf-8").splitlines(), 1)
        if begins.search(line)
    ]


PLANTED: dict[Rule, list[tuple[str, str]]] = {
    a_folder_loads_none_of_its_files: [
        ("surfaces/console/__init__.py", "from postern.surfaces.console.routes import console_routes"),
    ],
    sentences_begin_plainly: [
        ("core/planted.py", '"""Whoever calls."""'),
        ("core/planted.py", "x = 1  # Of a call, the last one"),
        ("core/planted.py", '"""Reads a call.\n\n    What is left is dropped.\n"""'),
        ("core/planted.py", '"""Reads. What is left is dropped."""'),
    ],
    a_type_name_means_one_thing: [
        ("usecases/planted.py", "class Step: ...\nif True:\n    Step = tuple[str, bool]"),
        ("usecases/planted.py", "State = Literal['on']\nState = Literal['off']"),
        ("usecases/planted.py", "class Step: ...\nclass Other:\n    class Step: ..."),
    ],
    core_is_pure: [
        *(
            ("core/planted.py", f"import {module}")
            for module in ["asyncio", "socket", "os", "time", "logging", "random", "secrets", "pathlib"]
        ),
        *(
            ("core/planted.py", f"from {module} import x")
            for module in [
                "sqlalchemy",
                "fastapi",
                "pydantic",
                "aiohttp",
                "urllib.request",
                "postern.observe",
            ]
        ),
        ("core/planted.py", "from . import call"),
        ("core/planted.py", "import datetime\nborn = datetime.datetime.now()"),
        ("core/planted.py", "from datetime import date\nborn = date.today"),
        ("core/planted.py", "def f():\n    import time"),
        ("core/planted.py", "text = open('x').read()"),
        ("core/planted.py", "async def f(): ..."),
        ("core/deeper/planted.py", "import os"),
    ],
    only_a_check_proves_a_caller: [
        ("core/planted.py", "ok = VerifiedCall(call, '', '')"),
        ("usecases/planted.py", "ok = credential.VerifiedCall(call, '', '')"),
        ("usecases/planted.py", "from postern.core.signatures.credential import VerifiedCall as V"),
        ("usecases/planted.py", "V = VerifiedCall"),
        ("usecases/planted.py", "ok = object.__new__(VerifiedCall)"),
        ("usecases/planted.py", "class Trusted(VerifiedCall): ..."),
    ],
    surfaces_ask_use_cases: [
        ("surfaces/rest/planted.py", "def f(gateway):\n    return gateway.store.webhooks"),
        ("surfaces/console/planted.py", "x = visit.gateway.engine"),
        ("surfaces/mcp/planted.py", "self._gateway.runtime.directory.by_address(b'')"),
    ],
    imports_stand_at_the_top: [
        ("usecases/planted.py", "def f():\n    from postern.core import call"),
        (
            "usecases/planted.py",
            "class C:\n    async def f(self):\n        if self:\n            import postern.core.calls.call",
        ),
    ],
    late_imports_close_no_circle: [
        ("usecases/planted.py", "def f():\n    from postern.usecases import planted"),
    ],
    nothing_is_imported_behind_our_back: [
        ("surfaces/planted.py", "import importlib\nimportlib.import_module('postern.stores')"),
        ("surfaces/planted.py", "import importlib\nimportlib.import_module(f'postern.{name}')"),
        ("surfaces/planted.py", "from ..stores import tables"),
    ],
}
"""Rule -> files and code that break it."""


@pytest.mark.parametrize("rule", PLANTED, ids=lambda rule: rule.__name__)
def test_the_code_keeps_the_rule(rule: Rule) -> None:
    assert rule(PACKAGE) == []


@pytest.mark.parametrize(
    ("rule", "file", "code"), [(rule, *plant) for rule, plants in PLANTED.items() for plant in plants]
)
def test_the_rule_sees_what_breaks_it(tmp_path: Path, rule: Rule, file: str, code: str) -> None:
    """In a package of one file: a rule looks at each by itself, and at all of ours above."""
    planted = tmp_path / file
    planted.parent.mkdir(parents=True)
    planted.write_text(code + "\n")
    found = rule(tmp_path)
    assert found and all(line.startswith(file) for line in found)


@pytest.mark.parametrize("file", sorted(LATE_IMPORTS))
def test_a_late_import_is_still_late(file: str) -> None:
    functions = [
        node
        for node in ast.walk(ast.parse((PACKAGE / file).read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    assert LATE_IMPORTS[file] <= {
        module for function in functions for node in ast.walk(function) for module in imported(node)
    }


@pytest.mark.parametrize("words", [["--version"], ["--help"], ["webhooks", "list"]])
def test_a_command_over_the_network_loads_nothing_that_it_does_not_use(
    words: list[str], tmp_path: Path
) -> None:
    """Nine tenths of the time in which such a command starts."""
    heavy = {
        "sqlalchemy",
        "starlette",
        "uvicorn",
        "prometheus_client",
        "structlog",
        "pydantic",
        "tomllib",
        "aiohttp",
        "httpx2",
    }
    code = (
        "import sys; from postern.__main__ import main\ntry: main()\n"
        f"except SystemExit: print(sorted({heavy!r} & sys.modules.keys()), file=sys.stderr)"
    )
    given = {"POSTERN_URL": "http://127.0.0.1:1", "POSTERN_API_KEY": "pk_x", "HOME": str(tmp_path)}
    ran = run_command(sys.executable, "-c", code, *words, environment=clean_environment(given))
    assert (ran.returncode, ran.stderr.splitlines()[-1]) == (0, "[]")


def test_little_is_a_dictionary_of_anything() -> None:
    """What has a fixed form is a type, and what has none has a name, which is written once (docs/decisions/0012-settings-and-answers-are-types.md)."""
    lines = [
        f"{file.relative_to(PACKAGE)}: {line.strip()}"
        for file in sorted(PACKAGE.rglob("*.py"))
        for line in file.read_text("utf-8").splitlines()
        if "dict[str, Any]" in line
    ]
    assert len(lines) <= 30, "\n".join(lines)


MOST_LINES = {"src": 58_250, "tests": 58_250}
"""Of Python, as many as there are, up to the next 250. A commit that needs more raises its number here and says in its message
what the lines are for and why none could go instead; one that takes lines away lowers it."""


@pytest.mark.parametrize("folder", MOST_LINES)
def test_the_whole_does_not_grow_unnoticed(folder: str) -> None:
    lines = sum(file.read_bytes().count(b"\n") for file in (ROOT / folder).rglob("*.py"))
    assert lines <= MOST_LINES[folder], f"{folder}: take lines away, or raise MOST_LINES and say why"


def test_imports_point_down() -> None:
    code, report = lint_imports(ROOT)
    assert code == 0, report


def test_an_import_that_points_up_or_sideways_is_seen(copy: Path) -> None:
    """Every pair that the layers forbid is planted at once, and each must be named in the tool's report."""
    pairs = [
        (lower, higher) for above, below in combinations(LAYERS, 2) for higher in above for lower in below
    ]
    pairs += [pair for row in LAYERS for pair in permutations(row, 2)]
    assert unnamed(copy, pairs) == []


def unnamed(copy: Path, pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Those of which the tool says nothing once each imports what it may not."""
    for importer, module in pairs:
        plant_import(copy, importer, module)
    code, report = lint_imports(copy)
    assert code != 0
    return [one for one in pairs if not re.search(rf"postern\.{one[0]}\b.* -> postern\.{one[1]}\b", report)]


def test_who_reaches_past_the_use_cases_or_for_the_network_is_seen(copy: Path) -> None:
    pairs = [*(("surfaces", module) for module in PAST_THE_USE_CASES), ("usecases", "outbound")]
    assert unnamed(copy, pairs) == []


@pytest.mark.parametrize(
    ("file", "needed"),
    [
        ("core/calls/paths.py", "core.webhooks.settings"),
        ("usecases/history/rows.py", "usecases.deliveries.views"),
        ("surfaces/console/views/history/listing.py", "surfaces.console.views.webhooks.listing"),
    ],
)
def test_folders_that_need_each_other_are_seen(copy: Path, file: str, needed: str) -> None:
    with (copy / "src" / "postern" / file).open("a") as end:
        end.write(f"\nimport postern.{needed}\n")
    code, report = lint_imports(copy)
    folders = f"postern.{file}".replace("/", ".").split(".")
    assert code != 0
    assert f"No cycles are allowed in {'.'.join(folders[:-3])}" in report


def test_a_module_outside_the_layers_is_seen(copy: Path) -> None:
    (copy / "src" / "postern" / "planted.py").touch()
    code, report = lint_imports(copy)
    assert code != 0
    assert "planted" in report


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The package alone, to be broken."""
    for file, _ in sources(PACKAGE):
        target = tmp_path / "src" / "postern" / file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(PACKAGE / file, target)
    shutil.copy(ROOT / ".importlinter", tmp_path)
    return tmp_path


def plant_import(copy: Path, importer: str, target: str) -> None:
    package = copy / "src" / "postern"
    is_folder = (package / importer).is_dir()
    for name in (importer, target):
        if not (package / name).is_dir():
            (package / f"{name}.py").touch()
    file = package / importer / "planted.py" if is_folder else package / f"{importer}.py"
    with file.open("a") as end:
        end.write(f"\nimport postern.{target}\n")


def lint_imports(root: Path) -> tuple[int, str]:
    command = "import sys; sys.path.insert(0, 'src'); from importlinter.cli import lint_imports_command; lint_imports_command()"
    ran = run_command(sys.executable, "-c", command, "--no-cache", folder=root)
    return ran.returncode, ran.stdout + ran.stderr
