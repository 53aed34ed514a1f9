"""`postern …`: the program, with the commands of the table and those that need the wiring."""

from collections.abc import Callable
from copy import copy as copy_of
from pathlib import Path
from typing import Annotated

import typer

from postern import __version__
from postern.core.operations.shown_setting import ShownSetting
from postern.surfaces.cli import table
from postern.surfaces.cli.gateway.api import api
from postern.surfaces.cli.gateway.machine import Local
from postern.surfaces.cli.run import EXIT_CODES, Json, err, report, show_page
from postern.usecases.answers import Listing, whole

VERSION = "--version"

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    add_completion=False,
    help="Postern, the inbound webhook gateway.\n\nOn this machine commands are answered by the gateway that serves the data folder; where none serves, they open the database themselves. After `postern login URL` they go to that gateway over the network instead.",
    epilog=f"Exit codes: {EXIT_CODES}.",
)
"""With the commands that need the wiring; see ``with_commands`` for the others."""


def with_commands(word: str | None = None) -> typer.Typer:
    """The program with all commands, or with no other of the table than the one of that word."""
    program = copy_of(app)
    program.registered_commands, program.registered_groups = [], []
    table.enter(program, word)
    program.registered_commands += app.registered_commands
    return program


def is_known(word: str) -> bool:
    """Whether it is enough to know what was typed."""
    return word in table.COMMANDS or word in {one.name for one in app.registered_commands} or word == VERSION


def _print_version(asked: bool) -> None:
    if asked:
        print(f"postern {__version__}")
        raise typer.Exit


@app.callback()
def program(
    version: Annotated[
        bool,
        typer.Option(VERSION, help="Print the version and end.", is_eager=True, callback=_print_version),
    ] = False,
    profile: Annotated[
        str | None,
        typer.Option(
            help="The gateway to go to: the name of a login, or `local` for the database of this machine. It may stand anywhere. "
            "POSTERN_PROFILE says the same; POSTERN_URL with POSTERN_API_KEY needs no login."
        ),
    ] = None,
) -> None:
    api.profile = profile


Copy = Callable[[str, str, Callable[[str, int, int], None]], dict[str, int] | None]


def _show_progress(table: str, done: int, total: int) -> None:
    """On standard error, and on a terminal one line for each table."""
    if err.is_terminal:
        err.print(f"{table}: {done:,} of {total:,}", end="\r" if done < total else "\n")
    elif done == total:
        err.print(f"{table}: {total:,} rows")


def enter_wired(
    local: Callable[[], Local],
    serve: Callable[[int, str | None, bool], None],
    develop: Callable[[Path | None, int | None, bool], None],
    migrate: Callable[[], str],
    copy: Copy,
) -> None:
    """The commands that need the wiring are handed in by it, and so is what the others need of this machine."""
    api.make_local = local

    @app.command("serve")
    def serve_command(
        workers: Annotated[
            int,
            typer.Option(
                min=1, max=64, help="How many processes. More than one needs Postgres and an engine to share."
            ),
        ] = 1,
        example: Annotated[
            bool,
            typer.Option(
                "--example",
                help="Also make the example: a webhook, a workflow in POSTERN_WORKFLOWS, and a curl that calls it.",
            ),
        ] = False,
        worker: Annotated[str | None, typer.Option(hidden=True)] = None,
    ) -> None:
        """Run the gateway in the foreground, with its embedded engine. Ctrl-C or SIGTERM ends both in good
        order; SIGHUP replaces several workers one after the other."""
        serve(workers, worker, example)

    @app.command("dev")
    def dev_command(
        workflows: Annotated[
            Path | None,
            typer.Argument(
                metavar="[FILE|FOLDER]", help="The workflow files. Default: POSTERN_WORKFLOWS, ./workflows."
            ),
        ] = None,
        port: Annotated[
            int | None,
            typer.Option(min=1, max=65535, help="The port to listen on. Default: POSTERN_PORT, 8080."),
        ] = None,
        example: Annotated[
            bool, typer.Option("--example", help="Also make the example: a webhook, a workflow, and a curl.")
        ] = False,
    ) -> None:
        """Run the gateway and its embedded engine while you write workflow files: a saved file is in force within a
        second, what is wrong with one is said with its line, and every call, answer and end of a run is a line. The data
        folder is that of `serve`, so other commands see the same webhooks and calls. Ctrl-C ends it."""
        develop(workflows, port, example)

    @app.command("migrate")
    def migrate_command(as_json: Json = False) -> None:
        """Bring the database's schema up to date. Needed on Postgres only; SQLite does it at the start."""
        schema = migrate()
        report({"schema": schema}, f"The schema is {schema}.", as_json)

    @app.command("copy")
    def copy_command(
        whence: Annotated[
            str, typer.Option("--from", help="The database to read, like sqlite:///data/postern.db.")
        ],
        where: Annotated[
            str, typer.Option("--to", help="The empty database to fill, like postgresql://user@host/name.")
        ],
        as_json: Json = False,
    ) -> None:
        """Move everything to another database. Stop every gateway first. Interrupted, it goes on where it
        was; at the end both are compared, row by row. The secret keys move separately: POSTERN_SECRET_KEYS
        stays what it is."""
        rows = copy(whence, where, _show_progress)
        text = (
            "This copy was finished before: nothing was done now, and what either of them got since is not in the other."
            if rows is None
            else f"Copied and compared: {sum(rows.values()):,} rows in {len(rows)} tables."
        )
        report({"rows": rows}, text, as_json)

    @app.command("settings")
    def settings_command(as_json: Json = False) -> None:
        """Every setting: its environment variable, the value in force, what it is for."""
        show_page(
            whole(api.local().settings())
            if api.login() is None
            else api.get(Listing[ShownSetting], "settings"),
            as_json,
            ["variable", "value", "what it is for"],
            "",
            lambda one: [one.variable, one.value, one.help],
        )
