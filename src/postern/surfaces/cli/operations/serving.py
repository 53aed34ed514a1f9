"""`postern serve`, `dev`, `migrate`, `copy`, `settings`, `mcp` and `prune`."""

import os
from pathlib import Path

import click

from postern.core.access.accounts import LEVELS
from postern.core.operations.shown_setting import ShownSetting
from postern.extras import missing
from postern.surfaces.cli.gateway.api import api
from postern.surfaces.cli.options import PATH, Choice, command
from postern.surfaces.cli.run import NOT_FOUND, end, err, for_programs, out, report, show_page
from postern.usecases.answers import Listing, whole


@click.command()
@click.option(
    "--workers",
    type=click.IntRange(1, 64),
    default=1,
    help="How many processes. More than one needs Postgres and an engine to share.",
)
@click.option(
    "--example",
    is_flag=True,
    help="Also make the example: a webhook, a workflow in POSTERN_WORKFLOWS, and a curl that calls it.",
)
@click.option("--worker", hidden=True)
def serve(workers: int, example: bool, worker: str | None) -> None:
    """Run the gateway in the foreground, with its embedded engine. Ctrl-C or SIGTERM ends both in good
    order; SIGHUP replaces several workers one after the other."""
    if example:
        os.environ["POSTERN_EXAMPLE"] = "on"
    api.local().machine(of_any_owner=True).serve(workers, worker, example)


@click.command()
@click.argument(
    "workflows",
    type=PATH,
    required=False,
    metavar="[FILE|FOLDER]",
    help="The workflow files. Default: POSTERN_WORKFLOWS, ./workflows.",
)
@click.option(
    "--port", type=click.IntRange(1, 65535), help="The port to listen on. Default: POSTERN_PORT, 8080."
)
@click.option("--example", is_flag=True, help="Also make the example: a webhook, a workflow, and a curl.")
def dev(workflows: Path | None, port: int | None, example: bool) -> None:
    """Run the gateway and its embedded engine while you write workflow files. A saved file is in force within a
    second, what is wrong with one is said with its line, and every call, answer and end of a run is a line. The data
    folder is that of `serve`, so other commands see the same webhooks and calls. Ctrl-C ends it."""
    if workflows is not None and not workflows.exists():
        end(f"{workflows} does not exist", NOT_FOUND)
    given = {"LOG": "off", "EXAMPLE": example and "on", "WORKFLOWS": workflows, "PORT": port}
    os.environ.update({f"POSTERN_{name}": str(value) for name, value in given.items() if value})
    api.local().machine(of_any_owner=True).develop(example)


@command()
def migrate() -> None:
    """Bring the database's schema up to date. On SQLite `serve` does this. On Postgres run it before a new
    version starts; the first `serve` sets up an empty database."""
    schema = api.local().machine(of_any_owner=True).migrate()
    report({"schema": schema}, f"The schema is {schema}.")


@command()
@click.option("--from", "whence", required=True, help="The database to read, like sqlite:///data/postern.db.")
@click.option(
    "--to", "where", required=True, help="The empty database to fill, like postgresql://user@host/name."
)
def copy(whence: str, where: str) -> None:
    """Move everything to another database. Stop every gateway first. If it is interrupted, type it again; it
    continues. At the end both are compared, row by row. The secret keys move separately: POSTERN_SECRET_KEYS
    stays what it is."""
    rows = api.local().machine(of_any_owner=True).copy(whence, where, _show_progress)
    text = (
        "This copy was finished before: nothing was done now, and what either of them got since is not in the other."
        if rows is None
        else f"Copied and compared: {sum(rows.values()):,} rows in {len(rows)} tables."
    )
    report({"rows": rows}, text)


def _show_progress(table: str, done: int, total: int) -> None:
    """Shows the progress on standard error; on a terminal a line for each table."""
    if err.is_terminal:
        err.print(f"{table}: {done:,} of {total:,}", end="\r" if done < total else "\n")
    elif done == total:
        err.print(f"{table}: {total:,} rows")


@command()
def settings() -> None:
    """List every setting: its environment variable, its value, what it is for."""
    show_page(
        whole(api.local().settings()) if api.login() is None else api.get(Listing[ShownSetting], "settings"),
        "",
        {"variable": "variable", "value": "value", "what it is for": "help"},
    )


@click.command()
@click.option("--level", type=Choice(LEVELS), default="read", help="What it may do: read, write or admin.")
def mcp(level: str) -> None:
    """Speak the Model Context Protocol on standard input and output, for an assistant that starts this
    command.

    A running gateway speaks it over HTTP as well, at /mcp, with an API key.
    """
    machine = api.machine("mcp")
    if sentence := missing("mcp", "This command"):
        end(sentence)
    machine.speak_mcp(level)


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


@command()
@click.option("--dry-run", is_flag=True, help="Only say what would be deleted.")
def prune(dry_run: bool) -> None:
    """Delete what is older than the settings allow, now. A running gateway does it by itself every ten
    minutes."""

    def report(what: str, so_far: int) -> None:
        if err.is_terminal and not out.as_json:
            err.print(f"\r{so_far:>12,} {_NAMES[what]} deleted", end="")

    machine = api.machine("prune")
    if dry_run:
        done = machine.plan_pruning()
    else:
        done = machine.prune(report)
        if err.is_terminal and not out.as_json:
            err.print()
    for_programs({"dryRun": dry_run, **done})
    for what, number in done.items():
        if number or what in ("invocations", "bodies", "rejected"):
            out.print(f"{number:>12,} {_NAMES[what]} {'would be ' if dry_run else ''}deleted")
