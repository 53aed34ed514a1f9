"""`postern history recheck`: admitting rejected calls."""

import click

from postern.surfaces.cli.gateway.api import api
from postern.surfaces.cli.history.history import commands
from postern.surfaces.cli.options import json_option
from postern.surfaces.cli.run import counted, out, show_json, show_table
from postern.usecases.answers import as_plain
from postern.usecases.calls.views import Admitted, Recheck


@commands.command("recheck")
@click.argument("webhook", metavar="WEBHOOK", help="The webhook's id (wh_…).")
@click.option("--admit", is_flag=True, help="Start those that pass.")
@json_option
def recheck(webhook: str, admit: bool, as_json: bool) -> None:
    """Which rejected calls would pass with the settings as they are now? `--admit` starts them, none of them
    twice."""
    found = api.get(Recheck, "webhooks", webhook, "readmissible")
    started: Admitted | None = None
    if admit:
        expected = {"expected": len(found.would_pass)}
        started = api.post(Admitted, "webhooks", webhook, "readmissible", body=expected)
    if as_json:
        show_json(as_plain(found) | (as_plain(started) or {}))
        return
    out.print(
        f"{len(found.would_pass)} would pass now, {found.still_rejected} would still be rejected,"
        f" {len(found.came_again)} came again and were accepted."
    )
    if found.not_kept:
        out.print(
            f"{counted(found.not_kept, 'rejected call')} not kept, only counted; ask the sender to send again."
        )
    if started is not None:
        out.print(f"{started.admitted} of {len(started.items)} admitted.")
        rows = [[one.invocation_id, "started" if one.admitted else one.reason] for one in started.items]
        show_table(["invocation", "result"], rows, "")
