"""Commands and their groups, and the options that several commands have."""

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from functools import partial, wraps
from inspect import unwrap
from pathlib import Path
from typing import Any, TypeVar, get_args

import click

from postern.core.history.replay import Values
from postern.surfaces.cli.run import out

PATH = click.Path(path_type=Path)

Function = Callable[..., Any]
F = TypeVar("F", bound=Function)


class Choice(click.Choice[str]):
    """A choice whose values a shell completes. An error names the value that was probably meant."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            near = get_close_matches(str(value).lower(), self.choices, 1)
            self.fail(f"{error.message} Did you mean {near[0]!r}?" if near else error.message, param, ctx)

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        """The help names the values, and says what they mean."""
        return "TEXT" if isinstance(param, click.Option) else None


def _json_asked(context: click.Context, option: click.Parameter, value: bool) -> None:
    out.as_json = value


USUAL: dict[str, click.Parameter] = {
    "webhook": click.Argument(["webhook"], metavar="WEBHOOK", help="The webhook's id (wh_…)."),
    "invocation": click.Argument(["invocation"], metavar="INVOCATION", help="The invocation's id (inv_…)."),
    "replay": click.Argument(["replay"], metavar="REPLAY", help="The replay's id (rpl_…)."),
    "user": click.Argument(["user"], metavar="USER", help="The user's id (usr_…)."),
    "yes": click.Option(["--yes"], is_flag=True, help="Do not ask."),
    "cursor": click.Option(["--cursor"], help="Go on where a page ended (nextCursor)."),
}
"""Parameters of many commands. A command has one if its function takes an argument of this name and does not
state the parameter itself."""
JSON = click.Option(
    ["--json"], is_flag=True, expose_value=False, help="Print JSON, for scripts.", callback=_json_asked
)


class Command(click.Command):
    """A command with --json."""

    def __init__(self, name: str | None, callback: Function, **of_click: Any) -> None:
        super().__init__(name, callback=callback, **of_click)
        stated, code = {parameter.name for parameter in self.params}, unwrap(callback).__code__
        # `signature` would take ten times as long.
        taken = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        usual = [parameter for name, parameter in USUAL.items() if name in taken and name not in stated]
        arguments = [parameter for parameter in usual if isinstance(parameter, click.Argument)]
        options = [parameter for parameter in usual if isinstance(parameter, click.Option)]
        self.params = [*arguments, *self.params, *options, JSON]


command = partial(click.command, cls=Command)


class Group(click.Group):
    command_class = Command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.write_commands(formatter, "Commands", [self.commands[name] for name in sorted(self.commands)])

    def write_commands(
        self, formatter: click.HelpFormatter, title: str, commands: Sequence[click.Command]
    ) -> None:
        """Writes each command with its whole first sentence, which Click would cut off at the line's end."""
        width = max(map(len, self.commands))
        with formatter.section(title):
            formatter.write_dl(
                [
                    (str(subcommand.name).ljust(width), subcommand.get_short_help_str(WHOLE))
                    for subcommand in commands
                ]
            )


WHOLE = 1000
"""Characters. No first sentence is so long."""

Given = dict[str, Any]
"""The values of such options by their names in the API. An option that was not typed is not in it."""
Options = Mapping[str, str | Callable[[Function], Function]]


def limit_option(default: int) -> Callable[[F], F]:
    return click.option(
        "--limit", type=click.IntRange(1, 200), default=default, help="How many, at most 200."
    )


def fields_option(default: str) -> Callable[[F], F]:
    return click.option(
        "--fields",
        type=Choice(get_args(Values)),
        default=default,
        help="The four values as they were recorded, or as the mapping finds them now.",
    )


def together(options: Options) -> Callable[[Function], Function]:
    """Adds these options to a command, which gets their values as its argument ``wanted``. The options have the
    API's names; a text is the help of a plain option."""

    def enter(command: Function) -> Function:
        @wraps(command)
        def run(**typed: Any) -> None:
            values = {name: typed.pop(name) for name in options}
            command(wanted={name: value for name, value in values.items() if value}, **typed)

        decorated: Function = run
        for name, option in reversed([*options.items()]):
            if isinstance(option, str):
                option = click.option(f"--{name.replace('_', '-')}", help=option)
            decorated = option(decorated)
        return decorated

    return enter
