"""Tables with a row for each value of a choice."""

from typing import Any, TypeVar, get_args

Table = TypeVar("Table", bound=dict[Any, Any])


def complete(table: Table, choice: Any, *, besides: tuple[str, ...] = ()) -> Table:
    """The table. Raises ``ValueError`` where it is read if it lacks a value of this ``Literal``, which could then be chosen and would
    fail in use, or has another one. ``besides``: the values that need no row."""
    if different := {*table, *besides} ^ {*get_args(choice)}:
        raise ValueError(f"the table and the choice differ: {', '.join(sorted(different))}")
    return table
