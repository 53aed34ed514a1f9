"""What was typed becomes a command, and its end an exit code."""

import os
import sys

import typer
import typer.main
from typer._click.exceptions import ClickException
from typer._completion_classes import completion_init

from postern.surfaces.cli.gateway.api import api
from postern.surfaces.cli.parameters import read_lightly
from postern.surfaces.cli.run import FAILED, INTERRUPTED, show_problem

PROFILE = "--profile"
INTERRUPTION = "Interrupted."


def run_typed(app: typer.Typer, arguments: list[str]) -> int:
    read_lightly()
    if "_POSTERN_COMPLETE" in os.environ:
        completion_init()
    try:
        command = typer.main.get_command(app)

        code = command.main(_profile_first(arguments), "postern", standalone_mode=False)
    except ClickException as error:
        if "--json" in arguments:
            show_problem(error.format_message(), "", {})
        else:
            error.show()
        return error.exit_code
    except typer.Abort:
        print("Nothing was done.", file=sys.stderr)
        return FAILED
    finally:
        api.close()
    if code == INTERRUPTED:
        print(INTERRUPTION, file=sys.stderr)
    return code or 0


def _profile_first(arguments: list[str]) -> list[str]:
    """It is an option of the program, and may stand anywhere before a `--`."""
    own = arguments[: arguments.index("--")] if "--" in arguments else arguments
    for place, argument in enumerate(own):
        width = 2 if argument == PROFILE else 1 if argument.startswith(f"{PROFILE}=") else 0
        if width:
            return [*arguments[place : place + width], *arguments[:place], *arguments[place + width :]]
    return arguments
