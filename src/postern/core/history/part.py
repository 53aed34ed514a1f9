"""A filter's condition for one header or value: ``name``, ``name=value``, or ``name=beginning*``."""

from functools import lru_cache

from msgspec import Struct, json

from postern.core.calls.paths import as_text, parse_path, walk_members
from postern.core.deliveries.delivery import FIELD_NAMES
from postern.core.history.invocation import Content, HistoryFilter, payload_of


class ContentPart(Struct, frozen=True):
    """``value``: None for any. ``begins``: the value is only the beginning."""

    name: str
    value: str | None
    begins: bool = False

    def is_met_by(self, text: str) -> bool:
        if self.value is None:
            return True
        text, value = text.lower(), self.value.lower()
        return text.startswith(value) if self.begins else text == value

    @property
    def is_mapped(self) -> bool:
        return self.name in FIELD_NAMES


def part_of(text: str) -> ContentPart:
    name, sign, value = text.partition("=")
    name, value = name.strip(), value.strip()
    if not sign:
        return ContentPart(name, None)
    return ContentPart(name, value.removesuffix("*"), value.endswith("*"))


def looks_into_calls(criteria: HistoryFilter) -> bool:
    """Whether no index helps, so that the calls themselves have to be read."""
    return bool(criteria.search or criteria.header or path_of(criteria))


def path_of(criteria: HistoryFilter) -> ContentPart | None:
    """The value of the payload that is asked for, unless it is one of the four mapped ones."""
    part = part_of(criteria.field) if criteria.field else None
    return None if part is None or part.is_mapped else part


def spellings(text: str) -> set[str]:
    """The text with A to Z in lower case, as any database can make them, and other letters as typed, small and in capitals."""
    ways = (text, text.lower(), text.upper(), text.title())
    return {way.encode().lower().decode() for way in ways}


def in_headers(part: ContentPart) -> bytes:
    """Bytes that recorded headers hold if the header is among them. They are compact JSON with names in lower case, so no
    other header's value can look like it."""
    return b"[" + json.encode(part.name.lower()) + b"," + _in_json(part, b"]")


def in_fields(part: ContentPart) -> bytes:
    """The same for a mapped value among the fields of a delivery."""
    return json.encode(part.name) + b":" + _in_json(part)


def _in_json(part: ContentPart, end: bytes = b"") -> bytes:
    if part.value is None:
        return b""
    value = json.encode(part.value)
    return value[:-1] if part.begins else value + end


def is_in_payload(part: ContentPart, headers: bytes, body: bytes) -> bool:
    """Whether the payload has such a value at the part's path. ``headers``: as they are recorded."""
    if not _may_be_in(part, headers, body):
        return False
    payload = payload_of(Content(headers, body))
    if payload is None:
        return False
    member = walk_members(payload.members, parse_path(part.name))
    return member is not None and part.is_met_by(as_text(member))


def _may_be_in(part: ContentPart, headers: bytes, body: bytes) -> bool:
    """A quick look at the bytes, so that few of thousands of bodies are read. False: reading would find nothing."""
    if b"\\" in body:
        return True  # any character may be written as an escape
    if (b"%" in body or b"+" in body) and b"urlencoded" in headers.lower():
        return True
    keys, value = _written_as_it_is(part)
    return all(key in body for key in keys) and value in body.lower()


@lru_cache(maxsize=100)
def _written_as_it_is(part: ContentPart) -> tuple[list[bytes], bytes]:
    """A body without escapes holds this if it has the part: the keys byte for byte, and the value in lower case."""
    keys = [step for step in parse_path(part.name) if isinstance(step, str) and not step.isdigit()]
    if keys[:1] == ["items"]:
        del keys[0]  # an array that is read as an object gets this name
    value = part.value or ""
    # Objects and arrays are compared without blanks, and bytes alone do not tell the lower case of letters beyond A to Z.
    if value[:1] in ("{", "[") or not value.isascii():
        value = ""
    named = [key.encode() for key in keys if "\N{REPLACEMENT CHARACTER}" not in key]
    return named, value.lower().encode()
