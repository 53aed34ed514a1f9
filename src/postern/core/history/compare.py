"""What differs between two calls: by name, by path and by line, never by where it happens to stand."""

import json
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Any, Literal

from postern.core.calls.paths import extended

Kind = Literal["added", "removed", "changed"]

MOST = 300
"""Differences of one kind that are shown; the rest is counted."""
LONGEST_TEXT = 300
LARGEST_READ = 2 * 1024 * 1024
"""Of larger bodies only whether they are the same is shown."""
DEEPEST = 200
MOST_LINES = 400
"""Between the first line that differs and the last: of more it is shown that they differ."""


@dataclass(frozen=True, slots=True)
class Change:
    place: str
    kind: Kind
    before: str | None = field(repr=False)
    after: str | None = field(repr=False)


@dataclass(slots=True)
class Changes:
    """The first ones, and how many there are."""

    shown: list[Change]
    count: int

    def add(self, place: str, before: str | None, after: str | None) -> None:
        self.count += 1
        if len(self.shown) < MOST:
            kind: Kind = "added" if before is None else "removed" if after is None else "changed"
            self.shown.append(Change(place, kind, _short(before), _short(after)))


def none() -> Changes:
    return Changes([], 0)


def pairs(before: list[tuple[str, str]], after: list[tuple[str, str]]) -> Changes:
    """By name. A name that came more than once is compared with all its values, in their order."""
    found, was, now = none(), _by_name(before), _by_name(after)
    for name in [*was, *(one for one in now if one not in was)]:
        if was.get(name) != now.get(name):
            found.add(name, _joined(was.get(name)), _joined(now.get(name)))
    return found


def _by_name(given: list[tuple[str, str]]) -> dict[str, list[str]]:
    named: dict[str, list[str]] = {}
    for name, value in given:
        named.setdefault(name, []).append(value)
    return named


def _joined(values: list[str] | None) -> str | None:
    return None if values is None else ", ".join(values)


class Number(str):
    """A number as its text: 10.00 is not 10.0."""


def read(text: bytes) -> Any:
    """Raises ``ValueError`` or ``RecursionError`` for what is no JSON."""
    return json.loads(text.decode(), parse_float=Number, parse_int=Number, parse_constant=Number)


def documents(before: Any, after: Any) -> Changes:
    """By path, as a field mapping writes it. The order of an object's keys does not count, that of a list does."""
    found = none()
    _walk("", before, after, found, 0)
    return found


def _walk(path: str, before: Any, after: Any, found: Changes, depth: int) -> None:
    if depth < DEEPEST and isinstance(before, dict) and isinstance(after, dict):
        for name in [*before, *(one for one in after if one not in before)]:
            here = extended(path, name)
            _both(here, before, after, name in before, name in after, name, found, depth)
    elif depth < DEEPEST and isinstance(before, list) and isinstance(after, list):
        for place in range(max(len(before), len(after))):
            _both(
                f"{path}[{place}]",
                before,
                after,
                place < len(before),
                place < len(after),
                place,
                found,
                depth,
            )
    elif type(before) is not type(after) or before != after:
        found.add(path or "(all of it)", _text(before), _text(after))


def _both(
    path: str, before: Any, after: Any, was: bool, is_now: bool, key: Any, found: Changes, depth: int
) -> None:
    if was and is_now:
        _walk(path, before[key], after[key], found, depth + 1)
    else:
        found.add(path, _text(before[key]) if was else None, _text(after[key]) if is_now else None)


def _text(value: Any) -> str:
    """As JSON, every number as it was written."""
    match value:
        case Number():
            return str(value)
        case dict():
            return "{" + ", ".join(f"{_text(name)}: {_text(one)}" for name, one in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(_text, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def lines(before: str, after: str) -> Changes | None:
    """By line. None where too much of it differs to say how."""
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
    found = none()
    for kind, a, b, c, d in SequenceMatcher(None, was, now, autojunk=False).get_opcodes():
        if kind == "equal":
            continue
        for step in range(max(b - a, d - c)):
            old = was[a + step] if a + step < b else None
            new = now[c + step] if c + step < d else None
            found.add(f"line {start + 1 + (a + step if old is not None else c + step)}", old, new)
    return found


def _short(text: str | None) -> str | None:
    return text if text is None or len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"
