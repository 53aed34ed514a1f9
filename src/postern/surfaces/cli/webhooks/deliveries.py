"""`postern webhooks hold`, `release` and `drop`: a webhook's deliveries."""

import click

from postern.surfaces.cli.gateway.api import api
from postern.surfaces.cli.options import json_option
from postern.surfaces.cli.run import counted, report
from postern.surfaces.cli.webhooks.webhooks import commands, webhook_argument
from postern.usecases.deliveries.views import Dropped, Hold, Released


@commands.command("hold")
@webhook_argument
@json_option
def hold(webhook: str, as_json: bool) -> None:
    """Accept and record calls as ever, and start nothing until `release`: for maintenance without loss."""
    done = api.post(Hold, "webhooks", webhook, "hold")
    report(done, "On hold: calls are recorded, and wait.", as_json)


@commands.command("release")
@webhook_argument
@json_option
def release(webhook: str, as_json: bool) -> None:
    """End the hold and start what waited, the oldest first."""
    done = api.post(Released, "webhooks", webhook, "release")
    report(done, f"Released. Due now: {counted(done.released, 'delivery', 'deliveries')}.", as_json)


@commands.command("drop")
@webhook_argument
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
def drop(webhook: str, yes: bool, as_json: bool) -> None:
    """Give up what waits behind a hold. Each call stays in the history and can be replayed. The hold goes
    on."""
    if not yes and not as_json:
        click.confirm("What waits now will not be started. Drop it?", abort=True)
    done = api.post(Dropped, "webhooks", webhook, "drop")
    report(done, f"Dropped {counted(done.dropped, 'delivery', 'deliveries')}.", as_json)
