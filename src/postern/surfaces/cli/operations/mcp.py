"""`postern mcp`"""

import click

from postern.core.access.accounts import LEVELS
from postern.extras import missing
from postern.surfaces.cli.gateway.api import api
from postern.surfaces.cli.options import Choice
from postern.surfaces.cli.run import USAGE, end


@click.command()
@click.option("--level", type=Choice(LEVELS), default="read", help="What it may do: read, write or admin.")
def mcp(level: str) -> None:
    """Speak the Model Context Protocol on standard input and output, for an assistant that starts this
    command.

    A running gateway speaks it over HTTP as well, at /mcp, with an API key.
    """
    machine = api.machine("mcp")
    if sentence := missing("mcp", "This command"):
        end(sentence, USAGE)
    machine.speak_mcp(level)
