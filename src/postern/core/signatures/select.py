"""References to places in a call, as text: ``header:Name``, ``query:name``, ``body:json.path``, ``item:t``.

A reference is parsed once, when a webhook's configuration changes, and then only asked.
``header:X-Signature-*`` is every header whose name starts so. ``item:`` means a named part of the signature
value itself (``t=…,v1=…``).
"""

import re
from collections.abc import Callable
from typing import Literal

from msgspec import Struct

from postern.core.calls.call import Call
from postern.core.calls.content import ANYTHING, UnreadableContent, read_object
from postern.core.calls.paths import InvalidPath, Path, as_text, parse_path, walk, walk_members

PlaceKind = Literal["header", "query", "body", "item"]
Find = Callable[[Call], list[bytes]]

_HEADER = re.compile(r"[!#$%&'+.^_`|~0-9A-Za-z-]{1,100}\*?")
_LONGEST_NAME = 100
_BLANK = b" \t"


class InvalidReference(ValueError):
    """The text is not a reference; the message says why."""


class Ref(Struct, frozen=True):
    """One place in a call. ``name`` is in lower case for headers, and verbatim for all else."""

    kind: PlaceKind
    name: str
    is_glob: bool = False
    path: Path = ()

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}{'*' if self.is_glob else ''}"


def parse_ref(text: str) -> Ref:
    kind, colon, name = text.strip().partition(":")
    if not colon or not name:
        raise InvalidReference(
            f"{text[:60]!r} is not a place in a call; write header:Name, query:name or body:path"
        )
    if kind == "header":
        return header_ref(name)
    if kind == "body":
        return Ref("body", name, path=_path(name))
    if kind == "query" or kind == "item":
        if len(name) > _LONGEST_NAME or not name.isprintable():
            raise InvalidReference(f"a name after {kind}: has 1 to {_LONGEST_NAME} printable characters")
        return Ref("query" if kind == "query" else "item", name)
    raise InvalidReference(
        f"{kind[:20]!r} is no part of a call; the parts are header, query, body and, for parts of the signature, item"
    )


def in_words(*places: "str | Ref") -> str:
    """References as people name them, where a sentence speaks of them."""
    return " or ".join(map(_in_words, map(str, places)))


def _in_words(text: str) -> str:
    kind, _, name = text.partition(":")
    words = {
        "query": "the URL parameter {}",
        "body": "the body's field {}",
        "item": "the part {} of the signature",
    }
    return words.get(kind, "{}").format(name)


def header_ref(name: str) -> Ref:
    if not _HEADER.fullmatch(name):
        raise InvalidReference(
            f"{name[:60]!r} is not a header name; a * may only stand at its end, after the name's beginning"
        )
    return Ref("header", name.removesuffix("*").lower(), is_glob=name.endswith("*"))


def _path(text: str) -> Path:
    try:
        return parse_path(text)
    except InvalidPath as error:
        raise InvalidReference(str(error)) from None


def finder(ref: Ref) -> Find:
    """A function that finds every value at this place, in order. An ``item:`` is inside such a value, not in the call."""
    name = ref.name.encode()
    match ref.kind:
        case "header" if ref.is_glob:
            return lambda call: [value.strip(_BLANK) for key, value in call.headers if key.startswith(name)]
        case "header":
            return lambda call: [value.strip(_BLANK) for value in call.header(name)]
        case "query":
            return lambda call: [value for key, value in call.query_pairs if key == name]
        case "body":
            return lambda call: in_body(call, ref.path)
        case "item":
            return lambda call: []


def in_body(call: Call, path: Path) -> list[bytes]:
    """The value at the path as a mapped field would show it: texts without quotes, numbers with the digits
    that were sent.

    It is looked up in what will be mapped, which for a form is not the body's own text: a signature over
    fields protects nothing if other fields are mapped."""
    payload = read_object(call, ANYTHING)
    if isinstance(payload, UnreadableContent):
        value = walk(call.body, path)  # nothing of it will be mapped: it is rejected for its content next
    else:
        value = walk_members(payload.members, path)
    if value is None or value == b"null":
        return []
    return [as_text(value).encode("utf-8", "surrogatepass")]


def matching_headers(call: Call, ref: Ref) -> list[tuple[bytes, bytes]]:
    """The headers a glob means, names and trimmed values, in the order of their names.

    The order on the wire is not to be relied on: proxies and HTTP/2 change it.
    """
    prefix = ref.name.encode()
    return sorted(
        (key, value.strip(_BLANK))
        for key, value in call.headers
        if (key.startswith(prefix) if ref.is_glob else key == prefix)
    )


def covers(wider: Ref, narrower: Ref) -> bool:
    """Returns whether ``wider`` finds everything that ``narrower`` finds."""
    if wider.kind != narrower.kind:
        return False
    if wider.is_glob:
        return narrower.name.startswith(wider.name)
    return not narrower.is_glob and narrower.name == wider.name
