"""`postern workflows`."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from postern.core.documents import Document
from postern.core.visible import visible
from postern.surfaces.cli.files import in_words, written_whole
from postern.surfaces.cli.gateway.api import api
from postern.surfaces.cli.options import PATH, Group
from postern.surfaces.cli.run import (
    CONFLICT,
    FAILED,
    NOT_FOUND,
    OK,
    USAGE,
    counted,
    end,
    for_programs,
    note,
    out,
    plain,
    report,
    show_json,
    show_page,
)
from postern.usecases.answers import UNSET, Listing, UnsetType, View, whole
from postern.usecases.history.views.requests import Fixture, PayloadTypes, Sample
from postern.usecases.operations.views import Workflows
from postern.usecases.summary import InvocationSummary
from postern.usecases.webhooks.views import Webhook, Webhooks

WRITTEN = "# Written by `postern workflows types`"
"""The first line of a file that may be written anew (`workflows/scaffold.py`)."""
PLUGIN = "postern"
"""The name of `workflows/pytest_plugin.py` in pyproject.toml."""
END_OF_TESTS = "WORKFLOW_TESTS_END"
"""The variable that names a file which the plugin makes when the tests have ended."""
NO_TEST = 5
OF_PYTEST = {0: OK, 4: USAGE}
"""Our exit code, by pytest's."""

commands = Group("workflows", help="The workflows that the embedded engine runs.")


@commands.command("list")
def listing() -> None:
    """List the workflows in POSTERN_WORKFLOWS and the Webhook IDs that each one wants."""
    page = api.get(Workflows, "workflows")
    show_page(
        page,
        "No workflow found in POSTERN_WORKFLOWS; `postern workflows new` writes one from a recorded event.",
        {
            "name": "name",
            "webhook ids": lambda workflow: ", ".join(workflow.webhook_ids) or "every webhook",
            "about": "help",
        },
    )
    for problem in page.problems:
        note(plain(problem))


@commands.command("check")
@click.argument(
    "folder",
    metavar="[FILE|FOLDER]",
    required=False,
    type=click.Path(exists=True, path_type=Path),
    help="Default: POSTERN_WORKFLOWS.",
)
def check(folder: Path | None) -> None:
    """Check workflow files before you copy them to where they run: load them as the engine does, and say what
    is wrong. Ends with 1 if something is."""
    loaded = api.here().load_workflows(folder)
    names, problems = (
        [workflow.name for workflow in loaded.workflows],
        [fault.error for fault in loaded.broken],
    )
    for_programs({"workflows": names, "problems": problems})
    out.print(f"{counted(len(names), 'workflow')}: {', '.join(names)}" if names else "No workflow found.")
    for problem in problems:
        note(plain(problem))
    if problems:
        sys.exit(FAILED)


@commands.command("new")
@click.argument("name", help="What the workflow is called.")
@click.option(
    "--from-sample",
    required=True,
    metavar="WEBHOOK",
    help="The webhook whose recorded event it is written from (wh_…).",
)
@click.option(
    "--print", "only_print", is_flag=True, help="Print it instead of writing a file into POSTERN_WORKFLOWS."
)
@click.option(
    "--with-test", is_flag=True, help="Also write a test, and the event as the fixture that it runs on."
)
def new(*, name: str, from_sample: str, only_print: bool, with_test: bool) -> None:
    """Write a workflow file from a recorded event, with the types of its fields and the ID of its webhook."""
    if only_print and with_test:
        end("--print writes no file, so there is none for --with-test")
    if only_print:
        source = _beginning(name, from_sample)
        for_programs({"source": source})
        out.print(source, end="")
        return
    file = api.here().keep_workflow(name, _beginning(name, from_sample))
    if not with_test:
        report({"written": str(file)}, f"Written: {file}")
        return
    files = [str(path) for path in (file, *api.here().keep_test(file, _event(name, from_sample)))]
    for_programs({"written": str(file), "files": files})
    for path in files:
        out.print(f"Written: {plain(path)}")


def _beginning(name: str, webhook: str) -> str:
    return api.text("webhooks", webhook, "new-workflow", name=name)


def _event(name: str, webhook: str) -> Document:
    """Returns the recorded event, or that of the newest call, like the workflow that is written."""
    event = api.get(Sample, "webhooks", webhook, "sample").event
    if event is not None:
        return event
    _beginning(name, webhook)  # says why there is none
    calls = Listing[InvocationSummary]
    (newest,) = api.get(calls, "invocations", webhook_id=webhook, code="accepted", limit=1).items
    return api.get(Fixture, "invocations", newest.id, "fixture").event


class WrittenTypes(View):
    """An item of --json."""

    webhook_id: str
    calls: int
    file: str | None
    source: str | UnsetType = UNSET


@commands.command("types")
@click.argument(
    "webhook", required=False, metavar="[WEBHOOK]", help="One webhook (wh_…). Default: each that was called."
)
@click.option(
    "--calls",
    type=click.IntRange(1, 1000),
    default=100,
    help="How many of the newest recorded calls are read.",
)
@click.option("--to", type=PATH, metavar="FOLDER", help="Where they are written. Default: POSTERN_WORKFLOWS.")
@click.option("--print", "only_print", is_flag=True, help="Print them instead of writing files.")
def types(*, webhook: str | None, calls: int, to: Path | None, only_print: bool) -> None:
    """Write the types of payloads, from recorded calls: a file for each webhook with the TypedDicts Event and Payload,
    for an editor and a type checker. A file that was written so is written anew; any other one stays as it is.

    Example: `from orders_types import Event`, after

      postern workflows types
    """
    every = list(api.every(Webhooks, "webhooks"))
    chosen = [listed for listed in every if webhook is None or listed.id == webhook]
    if webhook is not None and not chosen:
        api.get(Webhook, "webhooks", webhook)  # says that there is none
    written: list[WrittenTypes] = []
    for listed in chosen:
        payload_types = api.get(PayloadTypes, "webhooks", listed.id, "payload-types", calls=calls)
        if not payload_types.calls and webhook is None:
            continue
        if not payload_types.calls:
            end(f"No call of {listed.id} is recorded that could be read", CONFLICT, "conflict")
        if only_print:
            written.append(WrittenTypes(listed.id, payload_types.calls, None, payload_types.source))
            out.print(payload_types.source, end="")
            continue
        file = _write_types(to or api.here().workflows_folder(), _module(listed, every), payload_types.source)
        written.append(WrittenTypes(listed.id, payload_types.calls, str(file)))
        out.print(f"Written: {file}, from {counted(payload_types.calls, 'call')} of {plain(listed.name)}")
    for_programs(whole(written))
    if not written:
        out.print("No webhook has a recorded call yet.")


def _module(webhook: Webhook, every: list[Webhook]) -> str:
    """Names the file after the webhook; of two with the same name, the ids tell them apart."""
    words = _words(webhook)
    alone = all(other.id == webhook.id or _words(other) != words for other in every)
    return f"{words}_types" if alone else f"{words}_{webhook.id[-6:]}_types"


def _words(webhook: Webhook) -> str:
    words = re.sub(r"[^a-z0-9]+", "_", webhook.name.lower()).strip("_")[:60].strip("_") or "webhook"
    return f"webhook_{words}" if words[0].isdigit() else words


def _write_types(folder: Path, name: str, source: str) -> Path:
    file = folder / f"{name}.py"
    with in_words(file, "written"):
        folder.mkdir(parents=True, exist_ok=True)
        if file.exists() and not file.read_text(errors="replace").startswith(WRITTEN):
            end(f"{file} exists already and was not written by this command", CONFLICT, "conflict")
        with written_whole(file) as opened:
            opened.write(source.encode())
    return file


@commands.command("try")
@click.argument("name", help="The workflow's name.")
@click.option(
    "--sample",
    required=True,
    metavar="WEBHOOK",
    help="The webhook whose recorded event it is tried on (wh_…).",
)
def try_one(name: str, sample: str) -> None:
    """Run a workflow once on a recorded event, without the engine, and print what it would answer. Its steps
    really run, and nothing is waited for."""
    went = api.here().rehearse(name, _event(name, sample))
    for_programs({"answer": went.answer, "error": went.error or None, "printed": went.printed})
    out.print(visible(went.printed), end="")  # a part of it may be what a stranger has sent
    if went.answer is not None and not out.as_json:
        out.print(f"Answer {went.answer.get('status', 200)}:", "bold")
        show_json(went.answer.get("body"))
    elif not went.error:
        out.print("It ended without an answer: a waiting caller would hear 200 completed.")
    if went.error:
        end(went.error, FAILED)


@commands.command("test", cls=click.Command)
@click.argument(
    "what",
    nargs=-1,
    metavar="[FILE|FOLDER]...",
    help="Tests, or folders of them. Default: the folder tests in POSTERN_WORKFLOWS, or beside it. Words after "
    "-- are handed to pytest.",
)
def test(what: tuple[str, ...]) -> None:
    """Run the tests of workflow files, with pytest. A test imports the workflow by its file's name and runs it with
    postern.workflows.testing: no engine, no waiting, and what it says in place of steps.

    Examples:

      postern workflows test

      postern workflows test tests/test_orders.py -- -k refund
    """
    if find_spec("pytest") is None:
        end("Tests of workflows are run by pytest, which is not installed: pip install pytest")
    folder = api.here().workflows_folder()
    with TemporaryDirectory() as noted:
        end_of_tests = Path(noted, "ended")
        ran = subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", PLUGIN]
            + _with_tests(what, folder),
            # A run in the engine finds no other setting of Postern's either.
            env={name: value for name, value in os.environ.items() if not name.startswith("POSTERN_")}
            | {"POSTERN_WORKFLOWS": str(folder), END_OF_TESTS: str(end_of_tests)},
            check=False,
        )
        if ran.returncode == OK and not end_of_tests.exists():
            end(
                "The tests did not come to their end: a test or a workflow file has ended the process", FAILED
            )
    if ran.returncode == NO_TEST:
        end("There is no test: a function test_… in a file test_….py.", NOT_FOUND)
    sys.exit(OF_PYTEST.get(ran.returncode, FAILED))


def _with_tests(what: tuple[str, ...], folder: Path) -> list[str]:
    """Adds the usual folder of tests if none is named."""
    if any(not argument.startswith("-") and Path(argument.partition("::")[0]).exists() for argument in what):
        return [*what]
    usual = next((place for place in (folder / "tests", folder.parent / "tests") if place.is_dir()), folder)
    named = next((argument for argument in what if argument.endswith(".py") or "/" in argument), None)
    if named is not None:
        end(f"{named} does not exist", NOT_FOUND)
    return [str(usual), *what]
