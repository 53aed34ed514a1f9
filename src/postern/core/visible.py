"""Text for a terminal, of which a part may be a stranger's."""

JOINERS = "\u200c\u200d"
"""They join or part the characters beside them: Persian, Hindi and families of emoji are not written without them."""
_NO_JOINERS = dict.fromkeys(map(ord, JOINERS))


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
