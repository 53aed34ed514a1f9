"""`postern replays`: replays of many recorded calls."""

import time

import click

from postern.surfaces.cli.filters import which_calls
from postern.surfaces.cli.gateway.api import api, camel
from postern.surfaces.cli.options import Given, Group, fields_option, limit_option
from postern.surfaces.cli.run import FAILED, counted, err, report, show_page
from postern.usecases.answers import Listing
from postern.usecases.deliveries.views import Replay

commands = Group("replays", help="Replay many recorded calls: plan it, look at the count, run it.")

watch_option = click.option(
    "--watch",
    is_flag=True,
    help="Stay and show the progress until it is done and nothing moves any more. Ctrl-C leaves it running.",
)

CHECK_REPLAY_EVERY = 0.5


@commands.command("plan")
@which_calls
@click.option("--include-completed", is_flag=True, help="Also those whose workflow has completed.")
def plan(wanted: Given, include_completed: bool) -> None:
    """Count the accepted calls that a replay would start again. Nothing is started, and what comes in or fails later
    is not part of it. Calls whose workflow has completed are left out.

    Example:

      postern replays plan --webhook wh_… --status failed --since 2026-11-21T09:00:00Z
    """
    criteria = {camel(name): value for name, value in wanted.items()}
    made = api.post(Replay, "replays", body={"filter": criteria, "includeCompleted": include_completed})
    text = f"{counted(made.count, 'call')} would be replayed"
    if made.completed:
        text += f"; {made.completed} of them have" if include_completed else f"; {made.completed} more have"
        text += " completed already" + ("" if include_completed else " and are left out")
    report(made, f"{text}. To do it: postern replays run {made.id}")


@commands.command("run")
@fields_option("recorded")
@watch_option
def run(replay: str, fields: str, watch: bool) -> None:
    """Run a planned replay, the oldest call first. The gateway does it in the background."""
    begun = api.post(Replay, "replays", replay, "run", fields=fields)
    _report(_watched(replay) if watch else begun, watched=watch)


@commands.command("show")
@watch_option
def show(replay: str, watch: bool) -> None:
    """Show the progress of a replay."""
    progress = _watched(replay) if watch else api.get(Replay, "replays", replay)
    _report(progress, watched=watch)


@commands.command("list")
@limit_option(50)
def listing(limit: int, cursor: str | None) -> None:
    """List the replays, newest first."""
    page = api.get(Listing[Replay], "replays", limit=limit, cursor=cursor)
    show_page(
        page,
        "No replay yet: postern replays plan",
        {
            "id": "id",
            "state": "state",
            "done": "done",
            "skipped": "skipped",
            "of": "count",
            "became": lambda replay: str(replay.outcomes) or "-",
            "planned": "createdAt",
            "by": "createdBy",
            "run by": lambda replay: replay.started_by or "-",
        },
    )


@commands.command("cancel")
def cancel(replay: str) -> None:
    """End a replay. Calls that are already queued are still started; the others are not."""
    _report(api.post(Replay, "replays", replay, "cancel"))


def _watched(replay: str) -> Replay:
    """Shows the progress on standard error; on a terminal in one line."""
    shown = ""
    now = None
    while True:
        before, now = now, api.get(Replay, "replays", replay)
        line = f"{now.done + now.skipped:,} of {now.count:,}"
        line += f": {now.outcomes}" if now.done else ""
        if line != shown:
            err.print(line.ljust(len(shown)), end="\r" if err.is_terminal else "\n")
            shown = line
        # Queued calls are started soon after, where an engine is there; and then they end, if it is one that tells.
        if now.state != "running" and now == before:
            return now
        time.sleep(CHECK_REPLAY_EVERY)


def _report(replay: Replay, watched: bool = False) -> None:
    why = "their webhook is disabled or deleted, they are no longer kept, or they have completed or were started again meanwhile"
    skipped = f", {replay.skipped} skipped because {why}" if replay.skipped else ""
    became = f": {replay.outcomes}" if replay.done else ""
    failed = (
        f"\nTo replay those that failed: postern replays plan --replay {replay.id} --status failed"
        if replay.outcomes.failed
        else ""
    )
    values = " with their recorded values" if replay.fields == "recorded" else ""
    report(
        replay,
        f"{replay.state}: {replay.done} of {counted(replay.count, 'call')}{values}{skipped}{became}{failed}",
    )
    if watched and (replay.state != "done" or replay.outcomes.failed):
        raise click.exceptions.Exit(FAILED)
