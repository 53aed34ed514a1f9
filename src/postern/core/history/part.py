"""What a filter says of one header or one value: ``name``, ``name=value``, or ``name=beginning*``."""

from dataclasses import dataclass

import msgspec

from postern.core.calls.content import Unreadable, read_object
from postern.core.calls.paths import as_text, parse_path, walk_members
from postern.core.deliveries.delivery import FIELD_NAMES
from postern.core.history.invocation import HistoryFilter, Invocation


@dataclass(frozen=True, slots=True)
class Part:
    name: str
    value: str | None
    """None: any."""
    begins: bool = False
    """The value is only the beginning."""

    def is_met_by(self, found: str) -> bool:
        if self.value is None:
            return True
        return found.startswith(self.value) if self.begins else found == self.value

    @property
    def is_mapped(self) -> bool:
        """It is one of the four mapped values."""
        return self.name in FIELD_NAMES


def part_of(text: str) -> Part:
    name, sign, value = text.partition("=")
    name, value = name.strip(), value.strip()
    if not sign:
        return Part(name, None)
    return Part(name, value.removesuffix("*"), value.endswith("*"))


def looks_into_calls(wanted: HistoryFilter) -> bool:
    """Whether no index helps, so that the calls themselves are gone through."""
    return bool(wanted.search or wanted.header or path_of(wanted))


def path_of(wanted: HistoryFilter) -> Part | None:
    """The value of the payload that is asked for, where it is none of the four mapped ones."""
    part = part_of(wanted.field) if wanted.field else None
    return None if part is None or part.is_mapped else part


def in_headers(part: Part) -> bytes:
    """What is in the recorded headers where a header is among them. They are compact JSON, names in lower case, so that
    no other header's value can look like it."""
    name = msgspec.json.encode(part.name.lower())
    if part.value is None:
        return b"[" + name + b","
    value = msgspec.json.encode(part.value)
    return b"[" + name + b"," + (value[:-1] if part.begins else value + b"]")


def in_fields(part: Part) -> bytes:
    """The same for a mapped value among those that a call was started with."""
    name = msgspec.json.encode(part.name)
    if part.value is None:
        return name + b":"
    value = msgspec.json.encode(part.value)
    return name + b":" + (value[:-1] if part.begins else value)


def is_in_payload(part: Part, invocation: Invocation) -> bool:
    """Whether the payload has such a value at the path that the part names."""
    payload = read_object(invocation.as_call(), wrap_arrays=True)
    if isinstance(payload, Unreadable):
        return False
    found = walk_members(payload.members, parse_path(part.name))
    return found is not None and part.is_met_by(as_text(found))
