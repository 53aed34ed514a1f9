"""`postern replays …`: having many recorded calls happen again."""

import asyncio
from typing import Annotated

import typer

from postern.core.history.invocation import STATUSES
from postern.surfaces.cli.run import ACTOR, FAILED, Cursor, Json, Limit, err, report, session, show_page
from postern.usecases.deliveries import replays
from postern.usecases.deliveries.views import Replay
from postern.usecases.history import history
from postern.usecases.runtime.gateway import Gateway

commands = typer.Typer(
    no_args_is_help=True, help="Replay many recorded calls: plan it, look at the count, run it."
)

ReplayId = Annotated[str, typer.Argument(metavar="REPLAY", help="The replay's id (rpl_…).")]
Watch = Annotated[
    bool,
    typer.Option("--watch", help="Stay and show the progress until it has ended. Ctrl-C leaves it running."),
]

LOOK_EVERY = 0.5


@commands.command("plan")
def plan(
    webhook: Annotated[str | None, typer.Option(help="Only calls to this webhook (wh_…).")] = None,
    status: Annotated[str | None, typer.Option(help=f"Only these: {', '.join(STATUSES)}.")] = None,
    code: Annotated[str | None, typer.Option(help="Only calls with this reason.")] = None,
    since: Annotated[str | None, typer.Option(help="Not before this time (2026-11-21T09:00:00Z).")] = None,
    until: Annotated[str | None, typer.Option(help="Before this time.")] = None,
    search: Annotated[
        str | None, typer.Option(help="Only calls whose headers, query or body hold this text.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Count the accepted calls that a replay would start again. Nothing is started, and what comes in later
    is not part of it.

    Example:

      postern replays plan --webhook wh_… --status failed --since 2026-11-21T09:00:00Z
    """

    async def use_case(gateway: Gateway) -> Replay:
        wanted = history.filter_of(
            webhook_id=webhook, status=status, code=code, since=since, until=until, search=search
        )
        return await replays.plan(gateway, ACTOR, wanted)

    made = session.run(use_case)
    report(made, f"{made.count} calls would be replayed. To do it: postern replays run {made.id}", as_json)


@commands.command("run")
def run(replay: ReplayId, watch: Watch = False, as_json: Json = False) -> None:
    """Run a planned replay, the oldest call first, each with the field mapping as it is now. A running
    gateway works it off."""

    async def use_case(gateway: Gateway) -> Replay:
        begun = await replays.begin(gateway, ACTOR, replay)
        return await _watched(gateway, replay) if watch else begun

    _tell(session.run(use_case), as_json, watched=watch)


@commands.command("show")
def show(replay: ReplayId, watch: Watch = False, as_json: Json = False) -> None:
    """How far a replay is."""
    found = session.run(
        lambda gateway: _watched(gateway, replay) if watch else replays.show(gateway, ACTOR, replay)
    )
    _tell(found, as_json, watched=watch)


@commands.command("list")
def listing(
    limit: Limit = 50,
    cursor: Cursor = None,
    as_json: Json = False,
) -> None:
    """The replays, newest first."""
    page = session.run(lambda gateway: replays.listing(gateway, ACTOR, limit, cursor))
    show_page(
        page,
        as_json,
        ["id", "state", "done", "skipped", "of", "planned", "by"],
        "No replay yet: postern replays plan",
        lambda one: [
            one.id,
            one.state,
            one.done,
            one.skipped,
            one.count,
            one.created_at,
            one.created_by,
        ],
    )


@commands.command("cancel")
def cancel(replay: ReplayId, as_json: Json = False) -> None:
    """End a replay. What has been queued by then is started; the rest is not."""
    _tell(session.run(lambda gateway: replays.cancel(gateway, ACTOR, replay)), as_json)


async def _watched(gateway: Gateway, replay: str) -> Replay:
    """On standard error, and on a terminal in one line."""
    shown = ""
    while True:
        now = await replays.show(gateway, ACTOR, replay)
        line = f"{now.done + now.skipped:,} of {now.count:,}"
        if line != shown:
            err.print(line, end="\r" if err.is_terminal else "\n", markup=False)
            shown = line
        if now.state != "running":
            return now
        await asyncio.sleep(LOOK_EVERY)


def _tell(replay: Replay, as_json: bool, watched: bool = False) -> None:
    skipped = f", {replay.skipped} skipped because their webhook or body is gone" if replay.skipped else ""
    error = f": {replay.error}" if replay.error else ""
    report(replay, f"{replay.state}: {replay.done} of {replay.count} calls{skipped}{error}", as_json)
    if watched and replay.state != "completed":
        raise typer.Exit(FAILED)
