"""What was typed becomes a command, and its end an exit code."""

import errno
import os
import sys
from copy import copy

import typer
import typer.main
from typer._click.exceptions import ClickException
from typer._completion_classes import completion_init

from postern.surfaces.cli.gateway.api import api
from postern.surfaces.cli.main import is_known, with_commands
from postern.surfaces.cli.parameters import read_lightly
from postern.surfaces.cli.run import FAILED, INTERRUPTED, show_problem

PROFILE = "--profile"
INTERRUPTION = "Interrupted."
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def run_typed(arguments: list[str]) -> int:
    read_lightly()
    if "_POSTERN_COMPLETE" in os.environ:
        completion_init()
    try:
        profile, words = _profile_apart(arguments)
        program = with_commands() if "_POSTERN_COMPLETE" in os.environ else _typed(words)
        code = typer.main.get_command(program).main([*profile, *words], "postern", standalone_mode=False)
        sys.stdout.flush()
    except OSError as error:
        if error.errno not in (*NO_ROOM, errno.EPIPE) or error.filename is not None:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # it is flushed once more at the end
        if error.errno in NO_ROOM:  # else `| head` has seen enough
            print(f"What the command says cannot be written: {error.strerror}.", file=sys.stderr)
        return FAILED
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


def _typed(words: list[str]) -> typer.Typer:
    """A list of commands and a typing error need all of them."""
    return _branch(with_commands(words[0] if words and is_known(words[0]) else None), words)


def _branch(app: typer.Typer, words: list[str]) -> typer.Typer:
    """The table of commands with no other than the one that was typed, if it is one: Typer takes longer to read the
    parameters of all of them than most commands take to run."""
    typed = words[0] if words else ""
    commands = [one for one in app.registered_commands if one.name == typed]
    groups = [one for one in app.registered_groups if one.name == typed]
    if not commands and not groups:
        return app
    branch = copy(app)
    branch.registered_commands = commands
    branch.registered_groups = [copy(one) for one in groups]
    for group in branch.registered_groups:
        if group.typer_instance is not None:
            group.typer_instance = _branch(group.typer_instance, words[1:])
    return branch


def _profile_apart(arguments: list[str]) -> tuple[list[str], list[str]]:
    """It is an option of the program, and may stand anywhere before a `--`. It goes first, the words after it."""
    own = arguments[: arguments.index("--")] if "--" in arguments else arguments
    for place, argument in enumerate(own):
        width = 2 if argument == PROFILE else 1 if argument.startswith(f"{PROFILE}=") else 0
        if width:
            return arguments[place : place + width], arguments[:place] + arguments[place + width :]
    return [], arguments
