"""A payload as a tree to look at and to click: every value with the path that finds it again."""

import json
from dataclasses import dataclass, field
from typing import Any

import msgspec

from postern.core.calls.paths import extended

MOST_NODES = 1500
DEEPEST = 24
LONGEST_TEXT = 400
OPEN_LEVELS = 3


@dataclass(slots=True)
class Node:
    key: str
    path: str
    kind: str
    """object, array, text, number, boolean or null."""
    text: str = ""
    size: int = 0
    children: list["Node"] = field(default_factory=list)
    cut: str = ""
    """Why there is more than is shown here."""
    open: bool = False


class _Budget:
    def __init__(self) -> None:
        self.left = MOST_NODES


def tree(payload: Any) -> Node:
    return _node("", "", payload, 0, _Budget())


def _node(key: str, path: str, value: Any, depth: int, budget: _Budget) -> Node:
    budget.left -= 1
    if isinstance(value, dict | list):
        kind = "object" if isinstance(value, dict) else "array"
        node = Node(key, path, kind, size=len(value), open=depth < OPEN_LEVELS and len(value) <= 40)
        entries = value.items() if isinstance(value, dict) else enumerate(value)
        if depth >= DEEPEST:
            node.cut = "deeper levels are in the raw view"
            return node
        for name, inner in entries:
            if budget.left <= 0:
                node.cut = "the rest is in the raw view"
                break
            node.children.append(_node(str(name), extended(path, name), inner, depth + 1, budget))
        return node
    if isinstance(value, Number):
        return Node(key, path, "number", str(value)[:LONGEST_TEXT])
    if isinstance(value, str):
        return Node(key, path, "text", value[:LONGEST_TEXT], cut="…" if len(value) > LONGEST_TEXT else "")
    kind = "null" if value is None else "boolean" if isinstance(value, bool) else "number"
    return Node(key, path, kind, json.dumps(value))


def read(text: str | None) -> Any:
    """The body as values, or None where it is not JSON. Numbers stay the text that was sent: 10.00 is not
    10.0."""
    try:
        return json.loads(text, parse_float=Number, parse_int=Number, parse_constant=Number) if text else None
    except (ValueError, RecursionError):
        return None


def indented(text: str) -> str:
    """JSON with line breaks, every other character as it was sent; anything else as it came."""
    try:
        return msgspec.json.format(text, indent=2)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return text


class Number(str):
    """A number as its text."""
