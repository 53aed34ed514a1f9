"""`postern webhooks run` and `resume`: a webhook's schedule."""

import typer

from postern.surfaces.cli.gateway.api import api
from postern.surfaces.cli.run import FAILED, Json, report
from postern.surfaces.cli.webhooks.webhooks import WebhookId, commands
from postern.usecases.schedules.views import ScheduleRun
from postern.usecases.webhooks.views import Webhook


@commands.command("run")
def run(webhook: WebhookId, as_json: Json = False) -> None:
    """Fetch a schedule's source once, now, and take in what comes."""
    done = api.post(ScheduleRun, "webhooks", webhook, "schedule", "run")
    started = ", ".join(done.invocation_ids) or "nothing started"
    report(
        done,
        f"{done.result} in {done.duration_ms} ms{': ' + done.reason if done.reason else ''} ({started})",
        as_json,
    )
    if done.result == "failed":
        raise typer.Exit(FAILED)


@commands.command("resume")
def resume(webhook: WebhookId, as_json: Json = False) -> None:
    """Let a schedule go on that has paused itself."""
    done = api.post(Webhook, "webhooks", webhook, "schedule", "resume")
    report(done, f"It goes on at {done.schedule_state and done.schedule_state.next_run_at}.", as_json)
