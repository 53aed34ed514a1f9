"""How log lines look."""

from typing import TextIO

asked: list[str] = []
"""The style, where one was asked for."""


def log_style(asked: str, stream: TextIO) -> str:
    """``auto``, decided: text on a terminal, JSON for whoever collects lines."""
    return ("text" if stream.isatty() else "json") if asked == "auto" else asked
