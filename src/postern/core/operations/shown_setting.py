"""A setting of the program, as people see it."""

import msgspec


class ShownSetting(msgspec.Struct, frozen=True, rename="camel"):
    variable: str
    value: str
    """Of a secret only whether it is set."""
    default: str
    source: str | None
    """The variable or the file that it came from; None while it has its default."""
    secret: bool
    help: str
