"""`postern …`: the table of commands."""

from collections.abc import Callable
from importlib import metadata
from typing import Annotated, Any

import typer

from postern.surfaces.cli import (
    config,
    history,
    keys,
    mcp,
    operating,
    people,
    pruning,
    replays,
    signatures,
    workflows,
)
from postern.surfaces.cli.run import EXIT_CODES, USAGE, Json, Opened, end, err, out, session, show_page
from postern.usecases.answers import whole

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    add_completion=False,
    help="Postern, the inbound webhook gateway.\n\nCommands work on the same database as a running gateway, which notices their changes within a second.",
    epilog=f"Exit codes: {EXIT_CODES}.",
)
app.add_typer(operating.commands, name="webhooks")
app.add_typer(history.commands, name="history")
app.command("replay")(history.replay)
app.add_typer(replays.commands, name="replays")
app.command("prune")(pruning.prune)
app.add_typer(signatures.commands, name="signatures")
app.add_typer(signatures.secret_commands, name="secrets")
history.commands.command("recheck")(signatures.recheck)
app.command("export")(config.export)
app.command("apply")(config.apply)
app.command("mcp")(mcp.mcp)

app.add_typer(keys.commands, name="keys")
app.add_typer(people.users, name="users")
app.add_typer(people.sessions, name="sessions")
app.command("audit")(people.audit)
app.add_typer(workflows.commands, name="workflows")


def _print_version(asked: bool) -> None:
    if asked:
        out.print(f"postern {metadata.version('postern')}", markup=False)
        raise typer.Exit


@app.callback()
def postern(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and end.", is_eager=True, callback=_print_version),
    ] = False,
) -> None:
    pass


Copy = Callable[[str, str, Callable[[str, int, int], None]], dict[str, int] | None]


def _show_progress(table: str, done: int, total: int) -> None:
    """On standard error, and on a terminal one line for each table."""
    if err.is_terminal:
        err.print(f"{table}: {done:,} of {total:,}", end="\r" if done < total else "\n", markup=False)
    elif done == total:
        err.print(f"{table}: {total:,} rows", markup=False)


def make_cli(
    opened: Opened,
    serve: Callable[[int, str | None], None],
    list_settings: Callable[[], list[dict[str, Any]]],
    migrate: Callable[[], str],
    copy: Copy,
) -> typer.Typer:
    """The commands that need the wiring are handed in by it, and so is how the others open a gateway."""
    session.open = opened

    @app.command("serve")
    def serve_command(
        workers: Annotated[
            int,
            typer.Option(
                min=1, max=64, help="How many processes. More than one needs Postgres and an engine to share."
            ),
        ] = 1,
        worker: Annotated[str | None, typer.Option(hidden=True)] = None,
    ) -> None:
        """Run the gateway in the foreground, with its embedded engine. Ctrl-C or SIGTERM ends both in good
        order; SIGHUP replaces several workers one after the other."""
        serve(workers, worker)

    @app.command("migrate")
    def migrate_command() -> None:
        """Bring the database's schema up to date. Needed on Postgres only; SQLite does it at the start."""
        out.print(migrate(), markup=False)

    @app.command("copy")
    def copy_command(
        whence: Annotated[
            str, typer.Option("--from", help="The database to read, like sqlite:///data/postern.db.")
        ],
        where: Annotated[
            str, typer.Option("--to", help="The empty database to fill, like postgresql://user@host/name.")
        ],
    ) -> None:
        """Move everything to another database. Stop every gateway first. Interrupted, it goes on where it
        was; at the end both are compared, row by row. The secret keys move separately: POSTERN_SECRET_KEYS
        stays what it is."""
        for url in (whence, where):
            if not url.startswith(("sqlite:///", "postgresql://", "postgresql+psycopg://")):
                end("--from and --to are sqlite:///… or postgresql://…", USAGE)
        rows = copy(whence, where, _show_progress)
        if rows is None:
            out.print("This copy was finished before; nothing was done now.", markup=False)
            return
        out.print(f"Copied and compared: {sum(rows.values()):,} rows in {len(rows)} tables.", markup=False)

    @app.command("settings")
    def settings_command(as_json: Json = False) -> None:
        """Every setting: its environment variable, the value in force, what it is for."""
        settings = whole(list_settings())
        show_page(
            settings,
            as_json,
            ["variable", "value", "what it is for"],
            "",
            lambda one: [one["variable"], one["value"], one["help"]],
        )

    return app
