"""A body as it came, to look at: what kind it is, every byte that a reader would not see made visible, and no more of
it than a page can hold."""

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

import msgspec
from markupsafe import Markup, escape

from postern.core.calls.call import query_pairs

BodyKind = Literal["none", "json", "form", "xml", "text", "binary"]
ENDINGS: dict[BodyKind, str] = {"json": "json", "form": "txt", "xml": "xml", "text": "txt"}
"""Endings of files; the others are .bin."""

MOST_SHOWN = 20_000
"""Characters of a page that one body may take, marks and all."""
MOST_PAIRS = 200
HEX_BYTES = 1_024
_LOOKED_AT = 4_096


def kind_of(headers: Sequence[Sequence[str]], body: bytes) -> BodyKind:
    """Tells the kind by the bytes, and by the content type only where they do not show it: senders name types wrongly."""
    if not body:
        return "none"
    content_type = next((value for name, value in headers if name == "content-type"), "")
    media_type = content_type.partition(";")[0].strip().lower()
    beginning = body[:_LOOKED_AT]
    if b"\0" in beginning or not _is_text(beginning):
        return "binary"
    begins = beginning.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    if "json" in media_type or begins in (b"{", b"["):
        return "json"
    if media_type == "application/x-www-form-urlencoded":
        return "form"
    if begins == b"<" and (
        "xml" in media_type or "html" in media_type or beginning.lstrip().startswith(b"<?xml")
    ):
        return "xml"
    return "text"


def _is_text(beginning: bytes) -> bool:
    """Most of it can be read: a stray byte of another character set does not make a text binary."""
    strange = beginning.decode("utf-8", "surrogateescape")
    odd = sum(1 for char in strange if "\udc80" <= char <= "\udcff" or (char < " " and char not in "\t\n\r"))
    return odd * 10 <= len(strange)


class ShownBody(msgspec.Struct, frozen=True):
    """The beginning of a body, ready for a page."""

    html: Markup
    shown: int
    """Bytes of it that are there to see."""
    of: int

    @property
    def cut(self) -> bool:
        return self.shown < self.of


_NAMES = {
    "\ufeff": "BOM",
    "\u200b": "ZWSP",
    "\u200c": "ZWNJ",
    "\u200d": "ZWJ",
    "\u00ad": "SHY",
    "\u2028": "LS",
    "\u2029": "PS",
    "\x7f": "DEL",
    "\x1b": "ESC",
    "\0": "NUL",
}


def marked(body: bytes) -> ShownBody:
    """With blanks, line ends, control characters and bytes that are no text made visible. Blanks stay the characters
    they are, so that what is selected and copied is what came; the marks are painted over them."""
    # A character more than can be shown is enough: a megabyte is not decoded for a screenful.
    text = body[: MOST_SHOWN * 4 + 4].decode("utf-8", "surrogateescape")
    out: list[str] = []
    size = end = 0
    for match in _PIECES.finditer(text):
        piece = match[0]
        if piece[0] == " ":
            shown = f'<i class="b">{piece}</i>'
        elif "!" <= piece[0] <= "~":
            shown = str(escape(piece))
        else:
            shown = _piece(piece)
        size += len(shown) if shown.isascii() else 3 * len(shown)
        if size > MOST_SHOWN:
            break
        out.append(shown)
        end = match.end()
    return ShownBody(Markup("".join(out)), len(text[:end].encode("utf-8", "surrogateescape")), len(body))


_PIECES = re.compile(r"[!-~]{1,400}| {1,400}|.", re.DOTALL)


@lru_cache(maxsize=2048)
def _piece(char: str) -> str:
    """A character with its mark, where it would not be seen or taken for another one."""
    if char == "\n":
        return '<i class="n"></i>\n'
    if char == "\t":
        return '<i class="t">\t</i>'
    if char == "\r":
        return '<i class="r">&#13;</i>'
    if char == "\u00a0":
        return '<i class="m" data-m="NBSP">\u00a0</i>'
    if "\udc80" <= char <= "\udcff":
        return f'<b class="m" data-m="{ord(char) - 0xDC00:02X}">\ufffd</b>'
    if char in _NAMES:
        return f'<b class="m" data-m="{_NAMES[char]}"></b>'
    if unicodedata.category(char) in ("Cc", "Cf", "Zs", "Zl", "Zp", "Co", "Cn", "Cs"):
        name = f"{ord(char):02X}" if char < "\x80" else f"U+{ord(char):04X}"
        return f'<b class="m" data-m="{name}"></b>'
    return char


MOST_OF_A_VALUE = 300
"""Characters of a value that a page shows beside others."""
MOST_MARKS = 40
_UNSEEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060\u2066-\u2069\ufeff]"
)
"""Control characters, and those that turn the direction of what follows."""


def readable(text: object, most: int = MOST_OF_A_VALUE) -> Markup:
    """A value that somebody sent, among other text: its beginning, with marks for what would not be seen or would
    turn the text around it."""
    whole = str(text)
    # A mark is forty times as long as its character: the first ones say enough.
    shown = _UNSEEN.sub(lambda match: _piece(match[0]), str(escape(whole[:most])), count=MOST_MARKS)
    return Markup(_UNSEEN.sub("\ufffd", shown) + ("…" if len(whole) > most else ""))


def cut_text(text: str) -> tuple[str, bool]:
    """Its beginning, as much as a page holds, and whether that is less than all of it."""
    beginning = text[:MOST_SHOWN]
    while len(escape(beginning)) > MOST_SHOWN:
        beginning = beginning[: len(beginning) * 3 // 4]
    return beginning, len(beginning) < len(text)


def pretty(body: bytes) -> str:
    """JSON with line breaks; what would not be seen, or would turn the text around it, is escaped, and every other
    character is as it was sent. Empty if nothing is changed by it."""
    try:
        text = body.decode()
        indented = msgspec.json.format(text, indent=2)
    except (UnicodeDecodeError, msgspec.DecodeError, ValueError, RecursionError):
        return ""
    return "" if indented == text else _UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", indented)


def pairs(text: bytes) -> tuple[list[tuple[str, str]], int]:
    """Names and values of a query or a form, decoded, and how many there are."""
    raw_pairs = query_pairs(text.strip())
    decoded = [
        (name.decode("utf-8", "replace"), value.decode("utf-8", "replace"))
        for name, value in raw_pairs[:MOST_PAIRS]
    ]
    return decoded, len(raw_pairs)


def hexadecimal(body: bytes) -> str:
    """The beginning, sixteen bytes a line, with what of it is letters."""
    lines = []
    for place in range(0, min(len(body), HEX_BYTES), 16):
        row = body[place : min(place + 16, HEX_BYTES)]
        letters = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in row)
        lines.append(f"{place:06x}  {row.hex(' '):<47}  {letters}")
    return "\n".join(lines)
