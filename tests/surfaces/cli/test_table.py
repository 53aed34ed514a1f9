"""The table of commands, which are loaded by name: whole, and one that was typed loads no other."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import pytest
import typer

from postern.surfaces import cli
from postern.surfaces.cli.table import COMMANDS, enter
from support.program import clean_environment
from support.waiting import PATIENCE


def test_every_group_is_in_the_table_with_every_module_that_enters_commands_in_it() -> None:
    groups = set()
    for module in walk_packages(cli.__path__, f"{cli.__name__}."):
        for value in vars(import_module(module.name)).values():
            if isinstance(value, typer.Typer) and not value.registered_callback:
                groups.add(value)
    entered = {
        frozenset(one.callback.__module__ for one in group.registered_commands if one.callback)
        for group in groups
    }
    whole = typer.Typer()
    enter(whole, None)
    known = {group.name: group.typer_instance for group in whole.registered_groups}
    assert groups == set(known.values())
    assert entered == {
        frozenset(f"{cli.__name__}.{place.partition(':')[0]}" for place in COMMANDS[name or ""])
        for name in known
    }


LOADED = """
import sys
from postern.__main__ import main
try: main()
except SystemExit: print(*(name for name in sys.modules if name.startswith("postern.")), file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("words", "folders"),
    [
        (["--version"], {"gateway"}),
        (["webhooks", "--help"], {"gateway", "webhooks"}),
        (["settings", "--profile", "local"], {"gateway"}),
        (["replays", "list", "--help"], {"gateway", "history"}),
        (["status", "--help"], {"gateway"}),
    ],
)
def test_a_command_loads_no_other_ones(words: list[str], folders: set[str], tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", LOADED, *words],
        env=clean_environment({"HOME": str(tmp_path), "POSTERN_DATA_DIR": str(tmp_path)}),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    loaded = {name.removeprefix("postern.surfaces.cli.") for name in ran.stderr.splitlines()[-1].split()}
    alone = {"access", "signatures", "workflows"}
    topics = {"develop", "gateway", "history", "operations", "webhooks"}
    assert (loaded & topics, loaded & alone) == (folders, set())
