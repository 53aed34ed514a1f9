"""`postern webhooks run` and `resume`: a webhook's schedule."""

import click

from postern.surfaces.cli.gateway.api import api
from postern.surfaces.cli.options import json_option
from postern.surfaces.cli.run import FAILED, report
from postern.surfaces.cli.webhooks.webhooks import commands, webhook_argument
from postern.usecases.schedules.views import ScheduleRun
from postern.usecases.webhooks.views import Webhook


@commands.command("run")
@webhook_argument
@json_option
def run(webhook: str, as_json: bool) -> None:
    """Fetch a schedule's source once, now, and take in what comes."""
    done = api.post(ScheduleRun, "webhooks", webhook, "schedule", "run")
    started = ", ".join(done.invocation_ids) or "nothing started"
    report(
        done,
        f"{done.result} in {done.duration_ms} ms{': ' + done.reason if done.reason else ''} ({started})",
        as_json,
    )
    if done.result == "failed":
        raise click.exceptions.Exit(FAILED)


@commands.command("resume")
@webhook_argument
@json_option
def resume(webhook: str, as_json: bool) -> None:
    """Let a schedule go on that has paused itself."""
    done = api.post(Webhook, "webhooks", webhook, "schedule", "resume")
    report(done, f"It goes on at {done.schedule_state and done.schedule_state.next_run_at}.", as_json)
