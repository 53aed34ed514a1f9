"""`postern keys …`"""

from typing import Annotated

import typer

from postern.core.access.accounts import LEVELS
from postern.surfaces.cli.run import ACTOR, USAGE, Json, end, report, session, show_page
from postern.usecases.access import accounts
from postern.usecases.answers import whole

commands = typer.Typer(no_args_is_help=True, help="API keys.")


@commands.command("create")
def create(
    name: Annotated[str, typer.Argument(help="What or whom it is for.")],
    level: Annotated[str, typer.Option(help="read, write or admin.")] = "read",
    as_json: Json = False,
) -> None:
    """Make an API key. It is shown now and never again."""
    if level not in LEVELS:
        end(f"--level: choose one of {', '.join(LEVELS)}", USAGE)
    made = session.run(lambda gateway: accounts.create_key(gateway, ACTOR, name, level))
    report(made, made.key, as_json)


@commands.command("list")
def listing(as_json: Json = False) -> None:
    """The API keys: what they are for, what they may do, when they were last used."""
    found = session.run(lambda gateway: accounts.keys(gateway, ACTOR))
    columns = ["id", "name", "level", "prefix", "createdAt", "lastUsedAt"]
    show_page(whole(found), as_json, columns, "No API key yet: postern keys create NAME")


@commands.command("delete")
def delete(key: Annotated[str, typer.Argument(help="The key's id (key_…).")], as_json: Json = False) -> None:
    """Revoke an API key at once."""
    session.run(lambda gateway: accounts.delete_key(gateway, ACTOR, key))
    report({"deleted": key}, "Revoked.", as_json)
