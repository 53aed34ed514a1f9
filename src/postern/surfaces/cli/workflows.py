"""`postern workflows …`"""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from postern.surfaces.cli.gateway.api import api
from postern.surfaces.cli.run import (
    FAILED,
    NOT_FOUND,
    OK,
    USAGE,
    Json,
    end,
    out,
    report,
    show_json,
    show_page,
)
from postern.usecases.answers import Listing
from postern.usecases.history.views import Sample
from postern.usecases.operations.views import Workflow

NO_TEST = 5
OF_PYTEST = {0: OK, 4: USAGE}
"""By pytest's exit status."""

commands = typer.Typer(no_args_is_help=True, help="The workflows that the embedded engine runs.")


@commands.command("list")
def listing(as_json: Json = False) -> None:
    """The workflows in POSTERN_WORKFLOWS and the Webhook IDs each one wants."""
    found = api.get(Listing[Workflow], "workflows")
    show_page(
        found,
        as_json,
        ["name", "webhook ids", "about"],
        "No workflow found in POSTERN_WORKFLOWS; `postern workflows new` writes one from a recorded event.",
        lambda one: [one.name, ", ".join(one.webhook_ids) or "every webhook", one.help],
    )


@commands.command("new")
def new(
    name: Annotated[str, typer.Argument(help="What the workflow is called.")],
    from_sample: Annotated[
        str,
        typer.Option(metavar="WEBHOOK", help="The webhook whose recorded event it is written from (wh_…)."),
    ],
    only_print: Annotated[
        bool, typer.Option("--print", help="Print it instead of writing a file into POSTERN_WORKFLOWS.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Begin a workflow from a recorded event: its fields typed as they came, its Webhook ID condition filled
    in."""
    if only_print:
        source = _beginning(name, from_sample)
        if as_json:
            show_json({"source": source})
        else:
            print(source, end="")
        return
    if api.login() is None:
        file = api.here().write_workflow(name, from_sample)
    else:
        file = api.here().keep_workflow(name, _beginning(name, from_sample))
    report({"written": str(file)}, f"Written: {file}", as_json)


def _beginning(name: str, webhook: str) -> str:
    return api.text("webhooks", webhook, "new-workflow", name=name)


@commands.command("try")
def try_one(
    name: Annotated[str, typer.Argument(help="The workflow's name.")],
    sample: Annotated[
        str, typer.Option(metavar="WEBHOOK", help="The webhook whose recorded event it is tried on (wh_…).")
    ],
    as_json: Json = False,
) -> None:
    """Run a workflow once on a recorded event, without the engine, and print what it would answer. Its steps
    really run, and nothing is waited for."""
    if api.login() is None:
        went = api.here().try_workflow(name, sample)
    else:
        event = api.get(Sample, "webhooks", sample, "sample").event
        if event is None:
            _beginning(name, sample)  # says why there is none
        went = api.here().rehearse(name, event or {})
    if as_json:
        show_json({"answer": went.answer, "error": went.error or None, "printed": went.printed})
    else:
        if went.printed:
            out.print(went.printed, end="")
        if went.answer is not None:
            out.print(f"Answer {went.answer.get('status', 200)}:", "bold")
            show_json(went.answer.get("body"))
        elif not went.error:
            out.print("It ended without an answer: a waiting caller would hear 200 completed.")
    if went.error:
        end(went.error, FAILED)


@commands.command("test")
def test(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE|FOLDER]...",
            help="Tests, or folders of them. Default: the folder tests in POSTERN_WORKFLOWS, or beside it. What follows "
            "-- is handed to pytest.",
        ),
    ] = None,
) -> None:
    """Run the tests of workflow files, with pytest. A test imports the workflow by its file's name and runs it with
    postern.workflows.testing: no engine, no waiting, and what it says in place of steps.

    Examples:

      postern workflows test

      postern workflows test tests/test_orders.py -- -k refund
    """
    if find_spec("pytest") is None:
        end("Tests of workflows are run by pytest, which is not installed: pip install pytest", USAGE)
    folder = api.here().workflows_folder()
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *_with_tests(what or [], folder)],
        # A run in the engine finds no other setting of Postern's either.
        env={name: value for name, value in os.environ.items() if not name.startswith("POSTERN_")}
        | {"POSTERN_WORKFLOWS": str(folder)},
        check=False,
    )
    if ran.returncode == NO_TEST:
        end("There is no test: a function test_… in a file test_….py.", NOT_FOUND)
    sys.exit(OF_PYTEST.get(ran.returncode, FAILED))


def _with_tests(what: list[str], folder: Path) -> list[str]:
    """What was typed, and where tests usually are if it names none itself."""
    if any(not one.startswith("-") and Path(one.partition("::")[0]).exists() for one in what):
        return what
    usual = next((one for one in (folder / "tests", folder.parent / "tests") if one.is_dir()), folder)
    named = next((one for one in what if one.endswith(".py") or "/" in one), None)
    if named is not None:
        end(f"{named} does not exist", NOT_FOUND)
    return [str(usual), *what]
