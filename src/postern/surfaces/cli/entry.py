"""Runs the command that was typed, and turns its end into an exit code."""

import errno
import os
import sys

import click
from click.shell_completion import shell_complete

from postern.core.visible import visible
from postern.surfaces.cli.gateway.api import api
from postern.surfaces.cli.main import VARIABLE, program
from postern.surfaces.cli.run import FAILED, err, out, show_problem

PROFILE = "--profile"
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def run_typed(arguments: list[str]) -> int:
    if instruction := os.environ.get(VARIABLE):
        return shell_complete(program, {}, "postern", VARIABLE, instruction)
    out.as_json = False
    try:
        with program.make_context("postern", _profile_first(arguments)) as context:
            program.invoke(context)
        sys.stdout.flush()
    except OSError as error:
        if error.errno not in (*NO_ROOM, errno.EPIPE) or error.filename is not None:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # it is flushed once more at the end
        if error.errno in NO_ROOM:  # else `| head` has seen enough
            print(f"The command's output cannot be written: {error.strerror}.", file=sys.stderr)
        return FAILED
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.ClickException as error:
        if "--json" in arguments:
            show_problem(error.format_message(), "", {})
        elif isinstance(error, click.BadParameter) and not isinstance(error, click.MissingParameter):
            err.print(visible(error.format_message()), "red")  # as all other bad values are told, in a line
        else:
            error.show()
        return error.exit_code
    except click.Abort:
        print("Nothing was done.", file=sys.stderr)
        return FAILED
    finally:
        api.close()
    return 0


def _profile_first(arguments: list[str]) -> list[str]:
    """Moves --profile to the front: it is an option of the program, and may stand anywhere before a `--`."""
    own = arguments[: arguments.index("--")] if "--" in arguments else arguments
    for place, argument in enumerate(own):
        width = 2 if argument == PROFILE else 1 if argument.startswith(f"{PROFILE}=") else 0
        if width:
            return [*arguments[place : place + width], *arguments[:place], *arguments[place + width :]]
    return arguments
