"""`postern webhooks record` and `sample`: a recorded event. `try-conditions`: recorded calls, judged by other rows."""

import click

from postern.surfaces.cli.gateway.api import api
from postern.surfaces.cli.options import Choice
from postern.surfaces.cli.run import end, for_programs, out, plain, report, show_table
from postern.surfaces.cli.webhooks.webhooks import assignments, commands, settings_argument
from postern.usecases.answers import read_json
from postern.usecases.history.views.requests import TOO_LARGE, NotRecording, Recording, Sample
from postern.usecases.webhooks.views import TriedConditions

LANGUAGES = ("python", "n8n", "nodeRed", "liquid")


@commands.command("try-conditions")
@settings_argument
def try_conditions(*, webhook: str, settings: tuple[str, ...]) -> None:
    """Say how many of the last 1,000 calls would not start with these conditions, and which. Nothing is saved or started.

    Examples:

      postern webhooks try-conditions wh_… conditions='[{"of":"order.total","is":"greater","values":[100]}]'
    """
    tried = api.post(TriedConditions, "webhooks", webhook, "try-conditions", body=assignments(settings))
    for_programs(tried)
    for sentence in tried.in_words:
        out.print(plain(sentence))
    rows = [[call.invocation_id, call.received_at, call.event, call.reason] for call in tried.not_starting]
    show_table(["id", "received", "event", "reason"], rows, "")


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
        end("name one webhook, or say --all")
    done = _stop_recording(webhook) if off else _record(webhook, minutes * 60)
    which = "every webhook" if every else webhook
    report(
        done,
        f"Not recording {which}."
        if off
        else f"Recording the next event of {which}, until {done.recording_until}.",
    )


def _record(webhook: str | None, seconds: float) -> Recording:
    if webhook is None:
        return api.post(Recording, "record-events", seconds=seconds)
    return api.post(Recording, "webhooks", webhook, "record-events", seconds=seconds)


def _stop_recording(webhook: str | None) -> NotRecording:
    if webhook is None:
        return read_json(api.delete("record-events"), NotRecording)
    api.delete("webhooks", webhook, "record-events")
    return NotRecording(webhooks=1, recording_until=None)


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
    recorded = api.get(Sample, "webhooks", webhook, "sample")
    for_programs(recorded)
    rows = [
        [variable.path, variable.type, variable.example, variable.expressions.get(language, "")]
        for variable in recorded.variables
    ]
    show_table(
        ["variable", "type", "example", "expression"],
        rows,
        f"Nothing recorded yet: postern webhooks record {webhook}"
        if recorded.recorded_at is None
        else f"The recorded event holds {TOO_LARGE}. Record another one: postern webhooks record {webhook}",
    )
