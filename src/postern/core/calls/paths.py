"""Paths into a JSON document: ``customer.email``, ``items[0].sku``, ``items.0.sku``, ``a\\.b`` for a dot in a key.

Only the levels on the way are decoded. The rest stays the text that was sent, so that a number keeps every digit
(``10.00``, an id of 30 digits) and a large document costs no more than its path.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from operator import attrgetter
from typing import Any

import msgspec

Path = tuple[str | int, ...]

_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ARRAY = msgspec.json.Decoder(list[msgspec.Raw])
_TEXT = msgspec.json.Decoder(str)

_LONGEST = 500
_DEEPEST = 32
_SPECIAL = re.compile(r"([.\[\]\\])")
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\\]*")
_STEP = re.compile(r"\.?(?P<key>(?:[^.\[\]\\]|\\.)+)|\[(?P<index>\d{1,9})\]")


class InvalidPath(ValueError):
    """The text is not a path; the message says why."""


@lru_cache(maxsize=4096)
def parse_path(text: str) -> Path:
    """The steps of a path. A number is an index in an array and a key in an object."""
    if not text or len(text) > _LONGEST:
        raise InvalidPath(f"a path has 1 to {_LONGEST} characters")
    steps: list[str | int] = []
    position = 0
    while position < len(text):
        match = _STEP.match(text, position)
        if match is None or (position == 0 and text[0] == "."):
            raise InvalidPath(
                f"{text!r} is not a path at character {position + 1}; write customer.email or items[0].sku"
            )
        key = match["key"]
        if key is None:
            steps.append(int(match["index"]))
        elif position and text[position] != ".":
            raise InvalidPath(f"{text!r} is missing a dot at character {position + 1}")
        else:
            steps.append(re.sub(r"\\(.)", r"\1", key))
        position = match.end()
    if len(steps) > _DEEPEST:
        raise InvalidPath(f"a path has at most {_DEEPEST} steps")
    return tuple(steps)


def path_problem(text: str) -> str | None:
    """Says why this cannot be saved as a path: it is none, or it is written as other programs write paths. (A member may be
    called ``$``, or begin with ``https://``: then the path has a backslash.)"""
    if text.startswith(("$.", "$[")):
        return "write it without $ in front, like customer.email"
    if _ADDRESS.fullmatch(text):
        return "this is an address; write where in the body the value stands, like customer.email"
    try:
        parse_path(text)
    except InvalidPath as error:
        return str(error)
    return None


def extended(path: str, step: str | int) -> str:
    """The path one step further, with a dot inside a key escaped."""
    if isinstance(step, int):
        return f"{path}[{step}]"
    key = _SPECIAL.sub(r"\\\1", step) if step != "$" else r"\$"
    return f"{path}.{key}" if path else key


def members(document: msgspec.Raw | bytes) -> dict[str, msgspec.Raw]:
    """The members of an object, each still as its text. Raises msgspec's errors if it is not a JSON object."""
    return _OBJECT.decode(document)


def walk(document: msgspec.Raw | bytes, path: Path) -> bytes | None:
    """The JSON text at the path, or None if there is nothing."""
    here: msgspec.Raw | bytes = document
    try:
        for step in path:
            here = _into(here, step)
    except _NOTHING_THERE:
        return None
    return bytes(here)


def walk_members(document: dict[str, msgspec.Raw], path: Path) -> bytes | None:
    """The same for an object that is open already, so that four paths open the document once."""
    try:
        here = document[str(path[0])]
        for step in path[1:]:
            here = _into(here, step)
    except _NOTHING_THERE:
        return None
    return bytes(here)


def walker(path: Path) -> Callable[[dict[str, msgspec.Raw]], bytes | None]:
    """The same for one path and all calls: members beside the way are passed over, not opened."""
    first, *rest = map(str, path)
    kind: Any = msgspec.Raw
    try:
        if any(step.isdigit() for step in rest):  # an element of an array, or a member
            raise ValueError
        for step in reversed(rest):
            kind = msgspec.defstruct("Member", [("value", kind)], rename={"value": step})
    except ValueError:  # no struct has a name with a quote or a control character
        return lambda document: walk_members(document, path)
    if not rest:
        return lambda document: bytes(document[first]) if first in document else None
    decode, inner = msgspec.json.Decoder(kind).decode, attrgetter(".".join(["value"] * len(rest)))

    def read(document: dict[str, msgspec.Raw]) -> bytes | None:
        try:
            return bytes(inner(decode(document[first])))
        except _NOTHING_THERE:
            return None

    return read


def walk_every(document: msgspec.Raw | bytes, path: Path) -> list[bytes]:
    """The same, where an array on the way stands for each of its elements. Empty if one of them has nothing there."""
    try:
        return _every(document, path)
    except _NOTHING_THERE:
        return []


def _every(here: msgspec.Raw | bytes, path: Path) -> list[bytes]:
    if not path:
        return [bytes(here)]
    if bytes(here).lstrip()[:1] == b"[" and isinstance(path[0], str) and not path[0].isdigit():
        return [value for element in _ARRAY.decode(here) for value in _every(element, path)]
    return _every(_into(here, path[0]), path[1:])


_NOTHING_THERE = (KeyError, IndexError, ValueError, RecursionError, msgspec.DecodeError)


def _into(here: msgspec.Raw | bytes, step: str | int) -> msgspec.Raw:
    if isinstance(step, int) or (step.isdigit() and step.isascii()):
        try:
            return _ARRAY.decode(here)[int(step)]
        except msgspec.ValidationError:
            return _OBJECT.decode(here)[str(step)]
    return _OBJECT.decode(here)[step]


def as_text(value: bytes) -> str:
    """A mapped value as a workflow gets it: a text as itself, null as an empty text, everything else as its JSON."""
    if value[:1] == b'"':
        try:
            return _TEXT.decode(value)
        except msgspec.DecodeError:  # a lone surrogate: valid JSON grammar, not a text
            return value.decode("utf-8", "replace")
    if value == b"null":
        return ""
    if value[:1] in (b"{", b"["):
        return msgspec.json.format(value, indent=-1).decode("utf-8", "replace")
    return value.decode("utf-8", "replace")
