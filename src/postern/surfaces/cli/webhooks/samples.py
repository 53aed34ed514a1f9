"""`postern webhooks record` and `sample`: a recorded event."""

import click

from postern.surfaces.cli.gateway.api import api
from postern.surfaces.cli.options import Choice
from postern.surfaces.cli.run import USAGE, end, for_programs, report, show_table
from postern.surfaces.cli.webhooks.webhooks import commands
from postern.usecases.answers import read_json
from postern.usecases.history.views.requests import TOO_LARGE, NotRecording, Recording, Sample

LANGUAGES = ("python", "n8n", "nodeRed", "liquid")


@commands.command("record")
@click.argument(
    "webhook",
    required=False,
    metavar="[WEBHOOK]",
    help="The webhook's id (wh_…), or leave it out and say --all.",
)
@click.option("--all", "every", is_flag=True, help="Every webhook, each until its own next event.")
@click.option("--minutes", type=float, default=10, help="How long to wait for it.")
@click.option("--off", is_flag=True, help="Stop waiting for it.")
def record(*, webhook: str | None, every: bool, minutes: float, off: bool) -> None:
    """Record Events: keep the next accepted call or replay as the webhook's sample."""
    if (webhook is None) != every:
        end("name one webhook, or say --all", USAGE)
    path = ("record-events",) if webhook is None else ("webhooks", webhook, "record-events")
    done: Recording | NotRecording
    if not off:
        done = api.post(Recording, *path, seconds=minutes * 60)
    elif webhook is None:
        done = read_json(api.delete(*path), NotRecording)
    else:
        api.delete(*path)
        done = NotRecording(webhooks=1, recording_until=None)
    which = "every webhook" if every else webhook
    report(
        done,
        f"Not recording {which}."
        if off
        else f"Recording the next event of {which}, until {done.recording_until}.",
    )


@commands.command("sample")
@click.option(
    "--for",
    "language",
    type=Choice(LANGUAGES),
    default="python",
    help="Whose expressions to show: python, n8n, nodeRed or liquid.",
)
@click.option("--forget", is_flag=True, help="Delete what was recorded.")
def sample(webhook: str, language: str, forget: bool) -> None:
    """Show the recorded event: its variables, their values, and the expressions for workflows."""
    if forget:
        api.delete("webhooks", webhook, "sample")
        report({"forgotten": webhook}, "Forgotten.")
        return
    found = api.get(Sample, "webhooks", webhook, "sample")
    for_programs(found)
    rows = [[one.path, one.type, one.example, one.expressions.get(language, "")] for one in found.variables]
    show_table(
        ["variable", "type", "example", "expression"],
        rows,
        f"Nothing recorded yet: postern webhooks record {webhook}"
        if found.recorded_at is None
        else f"The recorded event holds {TOO_LARGE}. Record another one: postern webhooks record {webhook}",
    )
