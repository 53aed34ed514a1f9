"""Text that a stranger may have written: whether it can be kept, and how a terminal shows it safely."""

import re

JOINERS = "\u200c\u200d"
"""They join or part the characters beside them. Persian, Hindi and some emoji need them."""
_NO_JOINERS = dict.fromkeys(map(ord, JOINERS))
_NO_TEXT = re.compile("[\0\ud800-\udfff]")


def can_be_stored(text: str) -> bool:
    """Whether every database takes it: it has no NUL and no half of a character (a lone surrogate)."""
    return _NO_TEXT.search(text) is None


def on_one_line(text: str) -> bool:
    """Whether it can be read on one line: it is not empty, and nothing breaks the line or turns it around."""
    shown = text.translate(_NO_JOINERS)
    return bool(shown.strip()) and shown.isprintable()


def visible(text: str, keep: str = "\n\t") -> str:
    """Puts a dot in the place of what moves a terminal or turns its text around, except what ``keep`` has."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in keep or char in JOINERS else "·" for char in text)


def set_in(text: str) -> str:
    """The same for a log. Lines after the first are set in, so that they cannot pass for lines of the log."""
    return visible(text).replace("\n", "\n  ")
