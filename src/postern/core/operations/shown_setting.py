"""A setting of the program, as people see it."""

import msgspec


class ShownSetting(msgspec.Struct, frozen=True, rename="camel"):
    variable: str
    value: str
    """A secret shows only whether it is set."""
    default: str
    source: str | None
    """The variable or the file that it came from; None for the default."""
    secret: bool
    help: str
