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
    one = named(name)
    api.delete("listeners", one.id)
    report({"id": one.id}, f"{plain(one.name)} is ended.")


def named(name: str) -> Listener:
    """Returns the listener of this name or id. Ends the command if there is none, or more than one."""
    present = api.get(Listing[Listener], "listeners").items
    found = [one for one in present if name in (one.id, one.name)]
    if not found:
        there = ", ".join(sorted({plain(one.name) for one in present})) or "nobody does"
        end(f"Nobody listens by the name {plain(name)}; there: {there}.", NOT_FOUND)
    if len(found) > 1:
        end(f"Several listen by this name; say which: {', '.join(one.id for one in found)}", CONFLICT)
    return found[0]
