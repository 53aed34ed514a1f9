"""A new value of a choice is named wherever something is said of its values one by one: by mypy in each ``match``, and by
these tests in each table, which they find by themselves.
"""

import ast
import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import msgspec
import pytest

from support.choices import SOURCE, Choice, Place, choices, is_about, places, sources

ROOT = SOURCE.parents[1]

PARTIAL: dict[str, tuple[str, str]] = {
    "core/signatures/diagnosis/variants.py: secret_words.how": (
        "base64 hex",
        "are decoded from what they are called",
    ),
    "core/signatures/select.py: _in_words.words": ("header", "is called by its name alone"),
    "core/webhooks/listing.py: in_order.keys": ("created", "is the order that they come in"),
    "core/signatures/signed_content.py: _token: if kind": ("literal", "is what stands outside of braces"),
    "core/signatures/signed_content.py: _named_piece: if kind": (
        "header literal query",
        "have one value, or none",
    ),
    "settings.py: NEEDED": ("embedded none temporal", "need no setting"),
    "stores/history/filtering.py: _NOT_STARTED": ("accepted", "is the one that starts"),
    "surfaces/cli/terminal.py: _CODES": ("", "is plain text"),
    "surfaces/cli/webhooks/webhooks.py: SECRETS": ("none", "has no secret"),
    "surfaces/console/bodies.py: ENDINGS": ("binary none", "end with .bin"),
    "surfaces/console/views/confirmations.py: FOLLOWS": (
        "move release tag untag",
        "have no consequence to think of",
    ),
    "surfaces/console/views/history/sent.py: _views: if kind": ("none text xml", "are shown raw"),
    "surfaces/console/views/history/volume.py: strip_of.back": ("month", "is for all that is longer ago"),
    "surfaces/console/views/webhooks/listing.py: ORDERS": ("folder", "is chosen as a group"),
    "surfaces/http/connection.py: _PROGRESS": ("CLOSED IDLE LINGERING NEW", "make no progress"),
    "surfaces/http/states.py: _ROWS": (
        "HEAD_BEGUN HEAD_WHOLE HOPELESS LEFT LOST MORE",
        "are the same in each state, or end it",
    ),
    "surfaces/http/states.py: LONGEST": ("ANSWERING HOLDING", "last as long as the answer takes"),
    "surfaces/rest/framework/operation.py: Rows.of": (
        "header item",
        "are no parts of a request that carry a model",
    ),
    "usecases/webhooks/file/schema.py: schema": ("none", "has no secret"),
    "surfaces/console/templates/call/compare.html": ("json text", "have their differences shown"),
    "surfaces/console/templates/charts/charts.html": ("rejected", "has its reasons listed instead"),
    "surfaces/console/templates/incidents/detail.html: its branches": (
        "secrets",
        "leads to the settings, as others do",
    ),
    "surfaces/console/templates/webhook/who_may_call.html: data-when placement": (
        "bearer",
        "has no field of its own",
    ),
    "surfaces/console/templates/workflows.html": ("unknown", "is no state of a run in the embedded engine"),
    "usecases/calls/found.py: FoundSoFar.__init__.because": ("came_again starts", "need no reason"),
    "usecases/calls/found.py: FoundSoFar.in_words": ("came_again starts", "have sentences of their own"),
    "usecases/alarms/telling.py: TellLoop._tell_one: if moment": (
        "opened",
        "is tried again soon, and stays open",
    ),
    "usecases/alarms/telling.py: _notice: if moment": (
        "opened",
        "is told with the incident's sentence alone",
    ),
    "usecases/alarms/channels.toml": ("mailto webhook", "are messages of their own, made in Python"),
}
"""Places that leave out some values, and why."""

OPEN = {
    "core/address.py: reach_of": "is put into a sentence as it is",
    "core/deliveries/delivery.py: Logged.outcome": "is read as it was written",
    "core/history/replay.py: Values": "which of two is asked, and recorded ones are the exception",
    "core/signatures/algorithms.py: Digest": "is a name in hashlib",
    "core/webhooks/bounds.py: place_of_key": "is put into a request as it is",
    "engines/embedded/supervisor.py: Supervisor._run_process": "which of two",
    "outbound/guard.py: Reason": "comes with its sentence",
    "surfaces/cli/terminal.py: Terminal.__init__": "is a name in sys",
    "surfaces/http/crowding.py: Progress": "is an order",
    "surfaces/http/states.py: Do": "each is a method's name, looked up when the module is loaded",
    "surfaces/http/states.py: Wait": "which of two is asked, and the others wait alike",
    "surfaces/rest/operations.py: ReferencedSecret.kind": "is shown as it is",
    "usecases/calls/receive.py: CallerState": "is asked for the one that is meant",
    "usecases/calls/views.py: Result": "is shown with its reason",
    "usecases/history/views/calls.py: Attempt.outcome": "is shown as it is",
    "usecases/runtime/live_feed.py: LiveEvent.name": "is handed on as it is",
    "usecases/runtime/process.py: TroubleKind": "has its sentence where it arises",
}
"""Choices of whose values nothing is said one by one, and why a new one needs nothing else."""


# Found when a test asks: each lane of the suite loads this file, and one runs it.
trees = cache(sources)


@cache
def by_node() -> dict[ast.AST, Choice]:
    return choices(trees())


@cache
def all_places() -> list[Place]:
    return [*dict.fromkeys(places(trees()))]


@cache
def told_apart(place: Place) -> list[Choice]:
    """The choices that a place is about; that whose values it has all of, where there is one."""
    about = [one for one in dict.fromkeys(by_node().values()) if is_about(place, one)]
    typed = [one for one in about if one.where.endswith(f": {place.typed}")]
    return typed or [one for one in about if one.values == place.values] or about


def left_out(place: Place) -> set[str]:
    return set(PARTIAL[place.where][0].split(" ")) if place.where in PARTIAL else set()


def test_a_table_says_something_of_every_value_of_its_choice() -> None:
    lacking = [
        (place, choice)
        for place in all_places()
        for choice in told_apart(place)
        if choice.values - place.values
    ]
    wrong = [
        f"{place.where} lacks {sorted(choice.values - place.values)} of {choice.where}"
        for place, choice in lacking
        if all(one.values - place.values != left_out(place) for one in told_apart(place))
    ]
    assert not wrong, "complete it, write it as a match, or say in PARTIAL why not:\n" + "\n".join(wrong)
    assert not PARTIAL.keys() - {place.where for place, _ in lacking}, "they say something of every value now"


def place_of_first(node: ast.AST) -> tuple[int, int]:
    """Line and column of the first value that one may choose."""
    first = (
        node.slice
        if isinstance(node, ast.Subscript)
        else next(one for one in node.body if isinstance(one, ast.Assign))
    )  # type: ignore[attr-defined]
    return first.lineno - 1, first.col_offset


@pytest.fixture(scope="module")
def mypy(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What it says of the source with another value planted into each choice: `planted_7` into the seventh. Of the libraries it
    reads the one alone that our values are made with: the others know no choice of ours, and take most of its time."""
    folder = tmp_path_factory.mktemp("planted")
    shutil.copytree(
        SOURCE, folder / "src" / "postern", ignore=shutil.ignore_patterns("static", "__pycache__")
    )
    shutil.copy(ROOT / "pyproject.toml", folder)
    typed = folder / "typed"
    typed.mkdir()
    (typed / "msgspec").symlink_to(Path(msgspec.__file__).parent)
    for file in trees():
        lines = (SOURCE / file).read_bytes().splitlines(keepends=True)
        here = [
            (number, node)
            for number, node in enumerate(by_node())
            if by_node()[node].where.startswith(f"{file}: ")
        ]
        for number, node in sorted(here, key=lambda one: place_of_first(one[1]), reverse=True):
            line, column = place_of_first(node)
            is_enum = isinstance(node, ast.ClassDef)
            new = f'PLANTED_{number} = "planted"; ' if is_enum else f'"planted_{number}", '
            lines[line] = lines[line][:column] + new.encode() + lines[line][column:]
        if here:
            (folder / "src" / "postern" / file).write_bytes(b"".join(lines))
    command = [sys.executable, "-m", "mypy", "--no-site-packages", "--cache-dir", os.devnull, "src"]
    environment = {**os.environ, "MYPYPATH": str(typed)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True).stdout


def test_a_planted_value_is_named(mypy: str) -> None:
    by_mypy = set(map(int, re.findall(r"planted_(\d+)", mypy, re.IGNORECASE)))
    by_tables = {
        number
        for number, choice in enumerate(by_node().values())
        for place in all_places()
        if choice.values - place.values <= left_out(place)
        and is_about(place, Choice(choice.where, choice.values | {"planted"}))
    }
    unnamed = {
        one.where for number, one in enumerate(by_node().values()) if number not in by_mypy | by_tables
    }
    assert len(by_mypy) > 20 and len(by_tables) > 20
    assert not unnamed - OPEN.keys(), (
        "say something of each value by a match or a table, or say in OPEN why not"
    )
    assert not OPEN.keys() - unnamed, "they are named now"
