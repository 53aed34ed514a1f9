"""Text on a terminal or in a pipe. A library for it would take longer to load than most commands take to run."""

import os
import shutil
import sys
import textwrap
import unicodedata
from typing import Literal, TextIO

from postern.core.visible import visible

Style = Literal["", "bold", "red", "green", "yellow"]

_CODES = {"bold": "1", "red": "31", "green": "32", "yellow": "33"}

NARROWEST = 24
"""Characters. A column of sentences is never narrower."""


class Terminal:
    as_json = False
    """The command was typed with --json: standard output is for programs, and text for people is left out."""

    def __init__(self, stream: Literal["stdout", "stderr"]) -> None:
        self._name = stream

    @property
    def stream(self) -> TextIO:
        stream: TextIO = getattr(sys, self._name)
        return stream

    @property
    def is_terminal(self) -> bool:
        return self.stream.isatty()

    @property
    def width(self) -> int | None:
        """The width of the terminal. None in a pipe, where a row is a line, however long it is."""
        return shutil.get_terminal_size().columns if self.is_terminal else None

    def styled(self, text: str, style: Style) -> str:
        colours = self.is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if style and colours and text else text

    def print(self, text: str = "", style: Style = "", end: str = "\n") -> None:
        if self.as_json:
            return
        self.stream.write(self.styled(text, style) + end)
        if end != "\n":
            self.stream.flush()


def plain(text: str) -> str:
    """Returns text that may come from strangers as one line without control characters."""
    return visible(text, keep="")


def counted(number: int, one: str, many: str = "") -> str:
    """Returns ``1 call``, ``2 calls``; ``many`` is the plural if it is not written with an s alone."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def table(columns: list[str], rows: list[list[str]], width: int | None) -> list[str]:
    """Returns a header and the rows as lines. Only sentences are folded. Ids and URLs are not, so that they can
    be copied: a terminal breaks a long line by itself, and copies it whole."""
    widths = [max(cells(text) for text in column) for column in zip(columns, *rows, strict=True)]
    if width is not None:
        widths = _fitting(
            widths, [any(" " in row[place] for row in rows) for place in range(len(columns))], width
        )
    lines = []
    for row in [columns, *rows]:
        folded = [
            [text] if cells(text) <= room else textwrap.wrap(text, room) or [""]
            for text, room in zip(row, widths, strict=True)
        ]
        for number in range(max(map(len, folded))):
            parts = [part[number] if number < len(part) else "" for part in folded]
            padded = [part + " " * (room - cells(part)) for part, room in zip(parts, widths, strict=True)]
            lines.append("  ".join(padded).rstrip())
    return lines


def _fitting(widths: list[int], may_fold: list[bool], width: int) -> list[int]:
    """Narrows the widest columns of sentences first."""
    widths = list(widths)
    too_much = sum(widths) + 2 * (len(widths) - 1) - width
    while too_much > 0:
        foldable = [place for place, folds in enumerate(may_fold) if folds and widths[place] > NARROWEST]
        if not foldable:
            break
        widest = max(foldable, key=lambda place: widths[place])
        widths[widest] -= 1
        too_much -= 1
    return widths


def cells(text: str) -> int:
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        for char in text
    )


out = Terminal("stdout")
err = Terminal("stderr")
