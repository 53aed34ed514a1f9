"""`postern webhooks hold`, `release` and `drop`: a webhook's deliveries."""

from typing import Annotated

import typer

from postern.surfaces.cli.gateway.api import api
from postern.surfaces.cli.run import Json, counted, report
from postern.surfaces.cli.webhooks.webhooks import WebhookId, commands
from postern.usecases.deliveries.views import Dropped, Hold, Released


@commands.command("hold")
def hold(webhook: WebhookId, as_json: Json = False) -> None:
    """Accept and record calls as ever, and start nothing until `release`: for maintenance without loss."""
    done = api.post(Hold, "webhooks", webhook, "hold")
    report(done, "On hold: calls are recorded, and wait.", as_json)


@commands.command("release")
def release(webhook: WebhookId, as_json: Json = False) -> None:
    """End the hold and start what waited, the oldest first."""
    done = api.post(Released, "webhooks", webhook, "release")
    report(done, f"Released. Due now: {counted(done.released, 'delivery', 'deliveries')}.", as_json)


@commands.command("drop")
def drop(
    webhook: WebhookId,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: Json = False,
) -> None:
    """Give up what waits behind a hold. Each call stays in the history and can be replayed. The hold goes
    on."""
    if not yes and not as_json:
        typer.confirm("What waits now will not be started. Drop it?", abort=True)
    done = api.post(Dropped, "webhooks", webhook, "drop")
    report(done, f"Dropped {counted(done.dropped, 'delivery', 'deliveries')}.", as_json)
