"""Text for a terminal, of which a part may be a stranger's."""


def visible(text: str, keep: str = "\n\t") -> str:
    """With nothing that moves a terminal or turns its text around, but for what is to be kept."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in keep else "·" for char in text)


def set_in(text: str) -> str:
    """The same for what may have several lines in a log: those after the first cannot be taken for lines of the log."""
    return visible(text).replace("\n", "\n  ")
