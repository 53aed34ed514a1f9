"""Options that several commands have, written once."""

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, get_args

Given = dict[str, Any]
"""What was typed for such options, by the names that the API has for them; what was not typed is not in it."""
Command = Callable[..., None]


def with_options(options: Mapping[str, Any]) -> Callable[[Command], Command]:
    """The command has these options in the place of its parameter ``wanted``, which is given what was typed. They stand
    by the names that the API has for them."""

    def enter(command: Command) -> Command:
        @functools.wraps(command)
        def run(**typed: Any) -> None:
            values = {name: typed.pop(name) for name in options}
            command(wanted={name: value for name, value in values.items() if value}, **typed)

        shown: list[inspect.Parameter] = []
        for own in inspect.signature(command).parameters.values():
            given = own.name == "wanted"
            shown += (
                [_option(name, kind) for name, kind in options.items()]
                if given
                else [own.replace(kind=own.KEYWORD_ONLY)]
            )
        # Typer reads both.
        run.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
        run.__annotations__ = {one.name: one.annotation for one in shown}
        return run

    return enter


def _option(name: str, kind: Any) -> inspect.Parameter:
    default = False if get_args(kind)[0] is bool else None
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
