"""`postern prune`"""

import click

from postern.surfaces.cli.gateway.api import api
from postern.surfaces.cli.options import json_option
from postern.surfaces.cli.run import err, out, show_json

_NAMES = {
    "invocations": "calls",
    "overTheCap": "calls over the limit of rows",
    "rejected": "rejected calls over the limit",
    "bodies": "bodies",
    "expired": "expired keys and sessions, old audit notes and replays",
    "volumes": "old counts",
    "webhooks": "webhooks in the bin",
    "engineCopies": "copies in the engine",
}


@click.command()
@click.option("--dry-run", is_flag=True, help="Only say what would be deleted.")
@json_option
def prune(dry_run: bool, as_json: bool) -> None:
    """Delete what is older than the settings allow, now. A running gateway does it by itself every ten
    minutes."""

    def report(what: str, so_far: int) -> None:
        if err.is_terminal and not as_json:
            err.print(f"\r{so_far:>12,} {_NAMES[what]} deleted", end="")

    machine = api.machine("prune")
    if dry_run:
        done = machine.plan_pruning()
    else:
        done = machine.prune(report)
        if err.is_terminal and not as_json:
            err.print()
    if as_json:
        show_json({"dryRun": dry_run, **done})
        return
    for what, number in done.items():
        if number or what in ("invocations", "bodies", "rejected"):
            out.print(f"{number:>12,} {_NAMES[what]} {'would be ' if dry_run else ''}deleted")
