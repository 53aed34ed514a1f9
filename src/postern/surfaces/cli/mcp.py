"""`postern mcp`"""

from typing import Annotated

import typer

from postern.core.access.accounts import LEVELS, Actor
from postern.surfaces.cli.run import USAGE, end, session
from postern.surfaces.mcp import load_sdk


def mcp(level: Annotated[str, typer.Option(help="What it may do: read, write or admin.")] = "read") -> None:
    """Speak the Model Context Protocol on standard input and output, for an assistant that starts this
    command.

    A running gateway speaks it over HTTP as well, at /mcp, with an API key.
    """
    known = next((one for one in LEVELS if one == level), None)
    if known is None:
        end(f"--level: choose one of {', '.join(LEVELS)}", USAGE)
    actor = Actor("command line (MCP)", known)
    session.run(lambda gateway: load_sdk().serve_stdio(gateway, actor))
