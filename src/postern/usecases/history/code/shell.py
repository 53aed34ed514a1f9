"""Any bytes as a word that every POSIX shell, and fish, reads back as exactly them. Strangers wrote most of what stands in
these commands, so it must mean the same in every shell (`$'…'` does not), and nothing in it may run."""

import re
import shlex

# Linux takes 128 KiB for one argument of a program; what is built into a shell, as printf is, has no such limit.
LONGEST_ARGUMENT = 100_000


_READ_BY_FISH = re.compile(r"\\(?:['\\]|\Z)")
"""In fish a backslash before a quote keeps what is quoted from ending there, so what follows would run."""


def argument(value: bytes) -> str:
    text = plain(value)
    return f'"$({printed(value)})"' if text is None else shlex.quote(text)


def plain(value: bytes) -> str | None:
    """Text that can stand in single quotes and be looked at in a terminal; None where it cannot."""
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return None
    if "\n" in text and "!" in text:
        return None  # bash's history looks for ! at each line of its own, and misses that it is quoted
    if _READ_BY_FISH.search(text):
        return None
    return text if all(char.isprintable() or char == "\n" for char in text) else None


def printed(value: bytes) -> str:
    """By the one tool that every shell has for them."""
    return "printf '" + re.sub(rb"[^ -~]|[!%'\\]|^-", _octal, value).decode("ascii") + "'"


def _octal(found: re.Match[bytes]) -> bytes:
    return b"\\%03o" % ord(found[0])
