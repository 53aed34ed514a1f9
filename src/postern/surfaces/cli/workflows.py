"""`postern workflows …`"""

from typing import Annotated, Any

import typer

from postern.surfaces.cli.run import ACTOR, FAILED, Json, end, out, session, show_json, show_page
from postern.usecases.answers import whole
from postern.usecases.history import samples
from postern.usecases.operations import engine

commands = typer.Typer(no_args_is_help=True, help="The workflows that the embedded engine runs.")


@commands.command("list")
def listing(as_json: Json = False) -> None:
    """The workflows in POSTERN_WORKFLOWS and the Webhook IDs each one wants."""
    found = session.run(lambda gateway: engine.workflows(gateway, ACTOR))
    show_page(
        whole(found),
        as_json,
        ["name", "webhook ids", "about"],
        "No workflow found: see docs/workflows.md",
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
) -> None:
    """Begin a workflow from a recorded event: its fields typed as they came, its Webhook ID condition filled
    in."""
    if only_print:
        print(session.run(lambda gateway: samples.new_workflow(gateway, ACTOR, name, from_sample)), end="")
        return
    file = session.run(lambda gateway: samples.write_workflow(gateway, ACTOR, name, from_sample))
    out.print(f"Written: {file}", markup=False)


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

    async def use_case(gateway: Any) -> Any:
        return await samples.try_workflow(gateway, ACTOR, name, sample)

    went = session.run(use_case)
    if as_json:
        show_json({"answer": went.answer, "error": went.error or None, "printed": went.printed})
    else:
        if went.printed:
            out.print(went.printed, end="", markup=False)
        if went.answer is not None:
            out.print(f"Answer {went.answer.get('status', 200)}:", style="bold")
            show_json(went.answer.get("body"))
        elif not went.error:
            out.print("It ended without an answer: a waiting caller would hear 200 completed.")
    if went.error:
        end(went.error, FAILED)
