"""`postern workflows …`"""

from typing import Annotated

import typer

from postern.surfaces.cli.gateway.api import api
from postern.surfaces.cli.run import FAILED, Json, end, out, report, show_json, show_page
from postern.usecases.answers import Listing
from postern.usecases.history.views import Sample
from postern.usecases.operations.views import Workflow

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


@commands.command("test")
def test(
    name: Annotated[str, typer.Argument(help="The workflow's name.")],
    sample: Annotated[
        str, typer.Option(metavar="WEBHOOK", help="The webhook whose recorded event it is tried on (wh_…).")
    ],
    as_json: Json = False,
) -> None:
    """Run a workflow on a recorded event, without the engine, and print what it would answer. Its steps
    really run."""
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
