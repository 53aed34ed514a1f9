"""Compares two calls by name, by path and by line."""

import json
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import reduce
from itertools import zip_longest
from typing import Any, Literal

from msgspec import Struct

from postern.core.calls.paths import Path, extended

DifferenceKind = Literal["added", "removed", "changed"]

MOST_DIFFERENCES = 300
"""Differences that are shown; more are counted."""
LONGEST_TEXT = 300
LARGEST_READ = 2 * 1024 * 1024
"""Bytes. For larger bodies it is only said whether they differ."""
DEEPEST = 200
MOST_LINES = 400
"""From the first line that differs to the last. For more lines it is only said that they differ."""


@dataclass(frozen=True, slots=True)
class Difference:
    place: str
    kind: DifferenceKind
    before: str | None = field(repr=False)
    after: str | None = field(repr=False)


class Differences(Struct):
    """The first ones; ``count`` is how many there are."""

    count: int = 0
    items: list[Difference] = []

    def add(self, place: str, before: str | None, after: str | None) -> None:
        self.count += 1
        if self.has_room:
            kind: DifferenceKind = "added" if before is None else "removed" if after is None else "changed"
            was, now = (None if text is None else _short(text) for text in (before, after))
            self.items.append(Difference(_short(place), kind, was, now))

    @property
    def has_room(self) -> bool:
        return len(self.items) < MOST_DIFFERENCES


def pairs(before: list[tuple[str, str]], after: list[tuple[str, str]]) -> Differences:
    """Compares by name. The values of a name that came more than once are compared together, in their order."""
    differences, was, now = Differences(), _by_name(before), _by_name(after)
    for name in dict.fromkeys([*was, *now]):
        if was.get(name) != now.get(name):
            differences.add(name, was.get(name), now.get(name))
    return differences


def _by_name(given: list[tuple[str, str]]) -> dict[str, str]:
    named: dict[str, list[str]] = {}
    for name, value in given:
        named.setdefault(name, []).append(value)
    return {name: ", ".join(values) for name, values in named.items()}


class Number(str):
    """A number as its text: 10.00 is not 10.0."""


def read(text: bytes) -> Any:
    """Raises ``ValueError`` or ``RecursionError`` if it is not JSON."""
    return json.loads(text.decode(), parse_float=Number, parse_int=Number, parse_constant=Number)


def documents(before: Any, after: Any) -> Differences:
    """Compares by path, written as in a field mapping. The order of an object's keys does not count, that of a list does."""
    differences = Differences()
    _walk((), before, after, differences)
    return differences


_NOTHING = object()
"""Stands for a value that one of the two does not have."""


def _walk(way: Path, before: Any, after: Any, differences: Differences) -> None:
    if len(way) < DEEPEST and isinstance(before, dict) and isinstance(after, dict):
        for name in dict.fromkeys([*before, *after]):
            _walk((*way, name), before.get(name, _NOTHING), after.get(name, _NOTHING), differences)
    elif len(way) < DEEPEST and isinstance(before, list) and isinstance(after, list):
        for place, (was, now) in enumerate(zip_longest(before, after, fillvalue=_NOTHING)):
            _walk((*way, place), was, now, differences)
    elif type(before) is not type(after) or before != after:
        _add(way, before, after, differences)


def _add(way: Path, before: Any, after: Any, differences: Differences) -> None:
    if not differences.has_room:
        differences.count += 1  # its path is not put together: a key may be a million characters long
        return
    was, now = (None if value is _NOTHING else _text(value) for value in (before, after))
    differences.add(reduce(extended, way, "") or "(all of it)", was, now)


def _text(value: Any) -> str:
    """JSON with every number as it was written."""
    match value:
        case Number():
            return str(value)
        case dict():
            return "{" + ", ".join(f"{_text(name)}: {_text(member)}" for name, member in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(_text, value)) + "]"
        case _:
            return json.dumps(value, ensure_ascii=False)


def lines(before: str, after: str) -> Differences | None:
    """Compares by line. Returns None if too many lines differ."""
    was, now = before.splitlines(), after.splitlines()
    start = 0
    while start < min(len(was), len(now)) and was[start] == now[start]:
        start += 1
    end = 0
    while end < min(len(was), len(now)) - start and was[-1 - end] == now[-1 - end]:
        end += 1
    was, now = was[start : len(was) - end], now[start : len(now) - end]
    if max(len(was), len(now)) > MOST_LINES:
        return None
    differences = Differences()
    for kind, a, b, c, d in SequenceMatcher(None, was, now, autojunk=False).get_opcodes():
        if kind == "equal":
            continue
        for step in range(max(b - a, d - c)):
            old = was[a + step] if a + step < b else None
            new = now[c + step] if c + step < d else None
            differences.add(f"line {start + 1 + (a + step if old is not None else c + step)}", old, new)
    return differences


def _short(text: str) -> str:
    short = text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"
    # JSON may hold half a character, which no text can: it stays as it was written.
    return short.encode("utf-8", "backslashreplace").decode()
