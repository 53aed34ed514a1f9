"""Everything the product can do, on every surface, or a reason why not."""

import ast
import inspect
import re
from functools import cache
from pathlib import Path

import pytest
from reference import use_cases

from postern.surfaces.mcp.table import TOOLS
from postern.surfaces.rest.framework.operation import PREFIX, Operation
from postern.surfaces.rest.table import operations

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "postern"
SURFACES = ("rest", "mcp", "cli", "console")
TABLES = {
    "rest": "rest/table.py",
    "mcp": "mcp/table.py",
    "cli": "cli/main.py",
    "console": "console/routes.py",
}

# Use case -> surface -> why it is not offered there.
SIGNED_IN = "it concerns a person's own sign-in, and whoever asks here is not signed in"
ADMIN_AT_THE_MACHINE = "it is done once in a long while, at the machine, by whoever keeps its keys"
PEOPLE = "who may do what is decided by people, in the console or by API, and not by a model"
BY_FILE = "it reads secrets from the environment and files of the machine on which it is asked"
SHOWS_SECRETS = "secrets are shown in the console alone"
IS_A_STREAM = "it is a stream for a page or a program that listens; here one asks again"
IS_FOR_EYES = "whoever looks on wants the newest, and a program everything"
FOR_PAGES = "it stands beside the list on its page, and is no answer by itself"
ONE_OF_A_RECORDED = "a program records an event and asks for the same of that"
OWN_BOOKMARK = "it is a person's own bookmark in the console; a program keeps its filters itself"
IS_A_PICTURE = "it feeds a chart; the numbers are asked for with a filter of the history"
ONE_OF_MANY = "the list tells the same"
RUNS_BY_ITSELF = "it happens by itself; by hand it is wanted before a backup or a move, at the machine"
ONE_CLICK = "it is a click's worth of changing the webhook, which is asked for as such"
NO_ENGINE = "the engine knows its runs, and only the process that serves has an engine; a command works on the database"
IS_LOGGED = "each round that deletes something says so in the log"
FROM_ITS_START = "what a process was started with is looked up where it was started, or by its administrator in the console"
FOR_PICKERS = "it fills the console's own choices; the list tells the same"
PAGE_BY_PAGE = "the same is asked for page by page"
OWN_WAY = "the page does the same in a way of its own"
BY_A_LISTENER = "it is what a program does that takes calls in; here one sees who does, and sends calls there"
OWN_MEANS = "it is how the surface keeps one of its own promises, and nothing to ask for by itself"


def of_the_console(why: str) -> dict[str, str]:
    return dict.fromkeys(("rest", "mcp", "cli"), why)


NOT_OFFERED: dict[str, dict[str, str]] = {
    "accounts.change_own_password": {"mcp": SIGNED_IN, "cli": SIGNED_IN},
    "accounts.change_user": {"mcp": PEOPLE},
    "accounts.create_key": {"mcp": PEOPLE},
    "accounts.create_user": {"mcp": PEOPLE},
    "accounts.delete_key": {"mcp": PEOPLE},
    "accounts.delete_user": {"mcp": PEOPLE},
    "accounts.keys": {"mcp": PEOPLE},
    "accounts.revoke_session": {"mcp": PEOPLE},
    "accounts.sessions": {"mcp": PEOPLE},
    "accounts.user": {"mcp": PEOPLE, "cli": ONE_OF_MANY, "console": ONE_OF_MANY},
    "accounts.users": {"mcp": PEOPLE},
    "audit.listing": {"mcp": PEOPLE},
    "as_code.apply": {"mcp": BY_FILE, "console": BY_FILE},
    "as_code.export": {"mcp": BY_FILE, "console": BY_FILE},
    "engine.runs": {"cli": NO_ENGINE},
    "engine.state": of_the_console("`/readyz` tells it"),
    "export.everything": dict.fromkeys(("rest", "mcp", "console"), PAGE_BY_PAGE),
    "incidents.at_a_glance": of_the_console(FOR_PAGES),
    "history.request": {"mcp": "it is for a program that takes a call in again; a model is shown the call"},
    "findable.behind": of_the_console(FOR_PAGES),
    "history.oldest": of_the_console(FOR_PAGES),
    "samples.payload_types": {"console": "it is a file beside the workflow files, which an editor reads"},
    "idempotency.once": {"mcp": OWN_MEANS, "cli": OWN_MEANS},
    "listeners.answer": dict.fromkeys(("mcp", "console"), BY_A_LISTENER),
    "listeners.ask": dict.fromkeys(("mcp", "console"), BY_A_LISTENER),
    "listeners.end": {"console": "it hinders nobody there, and `postern listeners end` does it"},
    "listeners.enter": dict.fromkeys(("mcp", "console"), BY_A_LISTENER),
    "live.follow": {"mcp": IS_A_STREAM, "cli": IS_A_STREAM, "console": IS_FOR_EYES},
    "live.watch": of_the_console(IS_FOR_EYES),
    "remedies.apply": {"cli": ONE_CLICK},
    "retention.last": of_the_console(IS_LOGGED),
    "retention.kept_until": dict.fromkeys(
        ("rest", "mcp", "cli"), "it stands beside a call's notes; the settings in force tell the days"
    ),
    "retention.plan": dict.fromkeys(("rest", "mcp", "console"), RUNS_BY_ITSELF),
    "retention.prune": dict.fromkeys(("rest", "mcp", "console"), RUNS_BY_ITSELF),
    "readmission.admit": {"cli": "`history recheck --admit` admits all that pass"},
    "readmission.recheck": {"console": "its page asks with `recheck_within`, and shows how far it has come"},
    "readmission.recheck_within": dict.fromkeys(
        ("rest", "mcp", "cli"), "programs wait until `recheck` is done"
    ),
    "readmission.standing": dict.fromkeys(
        ("rest", "mcp", "cli"),
        "it is for the button: whoever asks for the call to be admitted hears the same",
    ),
    **{
        f"saved_views.{name}": of_the_console(OWN_BOOKMARK)
        for name in ("listing", "save", "rename", "delete")
    },
    "samples.workflow_of_call": of_the_console(ONE_OF_A_RECORDED),
    "settings.rotate_key": dict.fromkeys(("rest", "mcp", "console"), ADMIN_AT_THE_MACHINE),
    "settings.in_force": {"mcp": FROM_ITS_START},
    "readiness.status": dict.fromkeys(
        ("mcp", "console"), "the list of webhooks tells what is wrong with them"
    ),
    "signatures.provider": {"cli": ONE_OF_MANY, "console": OWN_WAY},
    "signatures.providers": {"console": OWN_WAY},
    "signatures.scheme": {"console": "the form of a custom scheme says it beside each field"},
    "trying.duplicate_key": dict.fromkeys(
        ("rest", "mcp", "cli"),
        "it answers a form while somebody types; elsewhere a call is shown with its headers",
    ),
    "trying.seen": dict.fromkeys(("rest", "mcp", "cli"), FOR_PICKERS),
    "volumes.chart": {"cli": IS_A_PICTURE},
    "volumes.last_day": {"rest": IS_A_PICTURE, "mcp": IS_A_PICTURE, "cli": IS_A_PICTURE},
    "remedies.take_second_secret": dict.fromkeys(
        ("rest", "mcp", "cli"), "elsewhere a second secret is saved, and the call admitted, as such"
    ),
    "remedies.effects": of_the_console("it stands beside a button of the console"),
    "listing.folders": of_the_console("the list, sorted by folder, tells the same"),
    "listing.page": of_the_console("the list is gone through with a cursor"),
    "listing.with_own_retention": of_the_console("the list tells the same"),
    "many.effects": of_the_console("a dry run tells how many it is about"),
    "picking.choices": of_the_console(FOR_PICKERS),
    "picking.meant": of_the_console(FOR_PICKERS),
    "picking.names": of_the_console(FOR_PICKERS),
    "picking.one": of_the_console(FOR_PICKERS),
    "webhooks.reveal": {"rest": SHOWS_SECRETS, "mcp": SHOWS_SECRETS, "cli": SHOWS_SECRETS},
}


def asked_for(folder: Path) -> set[str]:
    """The use cases that the code of a surface uses, by the names it imports them under."""
    files = folder.rglob("*.py") if folder.is_dir() else [folder]
    return set().union(*(used_by(path.read_text()) for path in files))


def used_by(source: str, function: str = "") -> set[str]:
    """The use cases that a file uses, or one function of it."""
    tree = ast.parse(source)
    modules: dict[str, str] = {}
    imported: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith("postern.usecases."):
            modules |= {alias.asname or alias.name: alias.name for alias in node.names}
            imported |= {
                alias.name: f"{str(node.module).rpartition('.')[2]}.{alias.name}" for alias in node.names
            }
    inside: list[ast.AST] = [tree]
    if function:
        inside = [node for node in ast.walk(tree) if getattr(node, "name", "") == function]
    found = set() if function else set(imported.values())
    for node in (one for part in inside for one in ast.walk(part)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
            found.add(f"{modules[node.value.id]}.{node.attr}")
        if isinstance(node, ast.Name) and node.id in imported:
            found.add(imported[node.id])
    return found


def asked_of_rest(folder: Path) -> set[tuple[str, str]]:
    """The operations that commands ask for, as method and path: ``api.get(Webhook, "webhooks", webhook)``."""
    found = set()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and isinstance(node.func.value, ast.Name)
                and node.func.value.id == "api"
                and node.func.attr in METHODS
            ):
                parts = node.args[0 if node.func.attr in ("text", "delete") else 1 :]
                for path_of_one in paths_of(parts):
                    found.add((METHODS[node.func.attr], path_of_one))
    return found


METHODS = {
    "get": "GET",
    "text": "GET",
    "stream": "GET",
    "post": "POST",
    "put": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
}


def paths_of(parts: list[ast.expr]) -> list[str]:
    """More than one where a part is one thing or another."""
    paths = [""]
    for part in parts:
        choices = [part.body, part.orelse] if isinstance(part, ast.IfExp) else [part]
        names = [one.value if isinstance(one, ast.Constant) else "{}" for one in choices]
        paths = [f"{path}/{name}" for path in paths for name in names]
    return paths


def by_commands() -> set[str]:
    """The use cases that commands reach through REST, and those of the machine."""
    asked = asked_of_rest(PACKAGE / "surfaces" / "cli")
    known = {(one.method, re.sub(r"{\w+}", "{}", one.path.removeprefix(PREFIX))): one for one in operations()}
    assert asked - known.keys() == set(), "there is no such operation"
    found = asked_for(PACKAGE / "wiring" / "machine.py")
    return found.union(*(by_operation(known[one]) for one in asked))


def by_tools() -> set[str]:
    """The use cases that the tools' actions reach through REST's operations."""
    return set().union(
        *(by_operation(action.operation) for tool in TOOLS.values() for action in tool.actions.values())
    )


def by_operation(operation: Operation) -> set[str]:
    """The use case that it is, or those that its function uses."""
    endpoint = operation.endpoint
    if endpoint.__module__.startswith("postern.usecases."):
        return {f"{endpoint.__module__.rpartition('.')[2]}.{endpoint.__name__}"}
    return used_by(inspect.getsource(inspect.getmodule(endpoint) or inspect), endpoint.__name__)


EVERY = [name for name, _, _ in use_cases()]


@cache
def offered(surface: str) -> set[str]:
    """Not while tests are collected: every lane would read all surfaces, and one asks."""
    by_operations = {"cli": by_commands, "mcp": by_tools}
    return by_operations[surface]() if surface in by_operations else asked_for(PACKAGE / "surfaces" / surface)


@pytest.mark.parametrize("surface", SURFACES)
def test_every_use_case_is_offered_or_listed_with_a_reason(surface: str) -> None:
    missing = {name for name in EVERY if name not in offered(surface)}
    explained = {name for name, reasons in NOT_OFFERED.items() if surface in reasons}
    assert missing - explained == set(), (
        f"give it its place in surfaces/{TABLES[surface]}, or its reason in NOT_OFFERED above"
    )


def test_a_reason_belongs_to_what_is_not_offered() -> None:
    given = {(name, surface) for name, reasons in NOT_OFFERED.items() for surface in reasons}
    assert {pair for pair in given if pair[0] not in EVERY} == set(), "there is no such use case any more"
    assert {pair for pair in given if pair[0] in offered(pair[1])} == set(), (
        "it is offered now: take the reason away"
    )
