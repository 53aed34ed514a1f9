"""Text for a terminal, of which a part may be a stranger's."""


def visible(text: str) -> str:
    """With nothing that moves a terminal or turns its text around. Lines and tabs stay."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in "\n\t" else "·" for char in text)
