"""Text of which a part may be a stranger's: whether it can be kept, and how it is shown on a terminal."""

import re

JOINERS = "\u200c\u200d"
"""They join or part the characters beside them: Persian, Hindi and families of emoji are not written without them."""
_NO_JOINERS = dict.fromkeys(map(ord, JOINERS))
_NO_TEXT = re.compile("[\0\ud800-\udfff]")


def can_be_stored(text: str) -> bool:
    """Whether every database takes it: no NUL, and no half of a character (a surrogate without the other one)."""
    return _NO_TEXT.search(text) is None


def on_one_line(text: str) -> bool:
    """Whether somebody can read it there: not empty, and nothing that breaks the line or turns it around."""
    shown = text.translate(_NO_JOINERS)
    return bool(shown.strip()) and shown.isprintable()


def visible(text: str, keep: str = "\n\t") -> str:
    """With nothing that moves a terminal or turns its text around, but for what is to be kept."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in keep or char in JOINERS else "·" for char in text)


def set_in(text: str) -> str:
    """The same for what may have several lines in a log: those after the first cannot be taken for lines of the log."""
    return visible(text).replace("\n", "\n  ")
