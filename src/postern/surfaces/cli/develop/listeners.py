"""`postern listeners`: the connected listeners."""

import click

from postern.surfaces.cli.gateway.api import api
from postern.surfaces.cli.options import Group
from postern.surfaces.cli.run import CONFLICT, NOT_FOUND, end, plain, report, show_page
from postern.usecases.answers import Listing
from postern.usecases.listeners.views import Listener

commands = Group("listeners", help="Who listens with `postern listen` now, and ending one.")


@commands.command("list")
def listing() -> None:
    """List each `postern listen` that is connected, the oldest first."""
    columns = ["id", "name", "by", "address", "since"]
    show_page(api.get(Listing[Listener], "listeners"), "Nobody listens: postern listen --to URL", columns)


@commands.command("end")
@click.argument("name", metavar="NAME", help="The listener's name, or its id (lsn_…).")
def end_one(name: str) -> None:
    """End a listener. Its command ends and says so."""
    listener = named(name)
    api.delete("listeners", listener.id)
    report({"id": listener.id}, f"{plain(listener.name)} is ended.")


def named(name: str) -> Listener:
    """Returns the listener of this name or id. Ends the command if there is none, or more than one."""
    present = api.get(Listing[Listener], "listeners").items
    matching = [listener for listener in present if name in (listener.id, listener.name)]
    if not matching:
        there = ", ".join(sorted({plain(listener.name) for listener in present})) or "nobody does"
        end(f"Nobody listens by the name {plain(name)}; there: {there}.", NOT_FOUND)
    if len(matching) > 1:
        end(
            f"Several listen by this name; say which: {', '.join(listener.id for listener in matching)}",
            CONFLICT,
        )
    return matching[0]
