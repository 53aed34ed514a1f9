"""A payload as a tree to look at, to search and to click: every value with the path that finds it again.

Only what is shown is opened. The rest stays the text that was sent, and is asked for by its path: a page does not grow
with what strangers send.
"""

import json
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import msgspec

from postern.core.calls.paths import InvalidPath, extended, members, parse_path, walk
from postern.core.history.compare import Number

ROOM = 34_000
"""Characters that a tree may take of a page, about."""
NODE = 150
"""Characters that a node takes besides its texts and its path."""
MOST_ENTRIES = 100
"""Entries shown of the object or list that is looked at."""
MOST_INNER = 40
"""Entries shown of an object or list inside it."""
DEEPEST = 24
LONGEST_TEXT = 300
OPEN_LEVELS = 3
MOST_HITS = 60
LARGEST_SEARCHED = 4 * 1024 * 1024
DEEPEST_SEARCHED = 200
LONGEST_SEARCH = 200

_ARRAY = msgspec.json.Decoder(list[msgspec.Raw])
_TEXT = msgspec.json.Decoder(str)
_BROKEN = (msgspec.DecodeError, ValueError, RecursionError)


@dataclass(slots=True)
class Node:
    key: str
    """Its beginning, where it is long."""
    path: str | None
    """The path for a field mapping; None if no mapping can name it."""
    kind: str
    """object, array, text, number, boolean or null."""
    text: str = ""
    size: int = 0
    children: list["Node"] = field(default_factory=list)
    cut: str = ""
    """Why there is more than is shown here."""
    more: int | None = None
    """The first entry that is not shown, where its path leads to it."""
    open: bool = False

    def __post_init__(self) -> None:
        if len(self.key) > LONGEST_TEXT:
            self.key = self.key[:LONGEST_TEXT] + "…"


class _Budget:
    def __init__(self) -> None:
        self.left = ROOM


def tree(text: bytes, at: str = "", start: int = 0) -> Node | None:
    """The JSON text, which is known to be some, from that path on; None where there is nothing."""
    try:
        here = walk(text, parse_path(at)) if at else text
    except InvalidPath:
        return None
    if here is None:
        return None
    steps = parse_path(at) if at else ()
    return _node(str(steps[-1]) if steps else "", at, here.strip(), 0, _Budget(), start)


def _node(key: str, path: str | None, text: bytes, depth: int, budget: _Budget, start: int = 0) -> Node:
    budget.left -= NODE + len(key) + 2 * len(path or "")
    if text[:1] not in (b"{", b"["):
        node = _leaf(key, path, text)
        budget.left -= len(node.text)
        return node
    kind = "object" if text[:1] == b"{" else "array"
    try:
        entries: list[tuple[str | int, msgspec.Raw]] = (
            list(members(text).items()) if kind == "object" else list(enumerate(_ARRAY.decode(text)))
        )
    except _BROKEN:
        return Node(key, path, kind, cut="this cannot be opened as a tree; the raw view has it")
    node = Node(key, path, kind, size=len(entries), open=depth < OPEN_LEVELS and len(entries) <= MOST_INNER)
    node.open = node.open or depth == 0
    if depth >= DEEPEST:
        _cut(node, 0, "deeper levels")
        return node
    most = MOST_ENTRIES if depth == 0 else MOST_INNER
    for place, (name, inner) in enumerate(entries[start:], start):
        if budget.left <= 0 or place - start >= most:
            _cut(node, place, f"{len(entries) - place:,} more")
            break
        node.children.append(_node(str(name), _below(path, name), bytes(inner), depth + 1, budget))
    return node


def _cut(node: Node, place: int, what: str) -> None:
    if node.path is None:
        node.cut = f"{what}: in the raw view"
    else:
        node.cut, node.more = what, place


def _below(path: str | None, name: str | int) -> str | None:
    if path is None:
        return None
    longer = extended(path, name)
    try:
        parse_path(longer)
    except InvalidPath:  # an empty key, or too long a way
        return None
    return longer


def _leaf(key: str, path: str | None, text: bytes) -> Node:
    kind = {b'"': "text", b"t": "boolean", b"f": "boolean", b"n": "null"}.get(text[:1], "number")
    try:
        value = _TEXT.decode(text) if kind == "text" else text.decode()
    except (*_BROKEN, UnicodeDecodeError):  # half a character: JSON by its grammar, and no text
        value = text.decode("utf-8", "replace").strip('"')
    return Node(key, path, kind, value[:LONGEST_TEXT], cut="…" if len(value) > LONGEST_TEXT else "")


class TreeSearch:
    """The result of a search: the number of hits, and the way to the first of them."""

    def __init__(self, sought: str) -> None:
        self._wanted = sought
        self._left = ROOM
        self._way: list[str | int] = []
        self.hits = self.shown = 0
        self.root: Node | None = None
        self.too_large = False

    def _within(self, key: str, value: Any) -> Node | None:
        in_key = bool(self._way) and isinstance(self._way[-1], str) and self._wanted in key.casefold()
        if isinstance(value, dict | list):
            shown = in_key and self._hit()
            children = self._children(value)
            if not shown and not children:
                return None
            kind = "object" if isinstance(value, dict) else "array"
            node = Node(key, self._path(), kind, size=len(value), children=children, open=True)
            if len(children) < len(value):
                _cut(node, 0, "show all")
            return node
        text = str(value) if isinstance(value, str) else json.dumps(value)
        in_value = self._wanted in text.casefold()
        if not (in_key or in_value) or not self._hit():
            return None
        cut = "…" if len(text) > LONGEST_TEXT else ""
        node = Node(key, self._path(), _kind(value), text[:LONGEST_TEXT], cut=cut)
        self._left -= NODE + 2 * len(node.path or "") + len(node.text)
        return node

    def _children(self, value: Any) -> list[Node]:
        nodes: list[Node] = []
        if len(self._way) < DEEPEST_SEARCHED:
            for name, inner in value.items() if isinstance(value, dict) else enumerate(value):
                self._way.append(name)
                node = self._within(str(name), inner)
                self._way.pop()
                if node is not None:
                    nodes.append(node)
        return nodes

    def _path(self) -> str | None:
        path: str | None = ""
        for step in self._way:
            path = _below(path, step)
        return path

    def _hit(self) -> bool:
        """Counts a hit and returns whether there is room to show it."""
        self.hits += 1
        if self.shown >= MOST_HITS or self._left <= 0:
            return False
        self.shown += 1
        return True


def search(text: bytes, sought: str) -> TreeSearch:
    """Keys and values that hold this, in capitals or not; a value is found as it is shown."""
    result = TreeSearch(sought.casefold()[:LONGEST_SEARCH])
    result.too_large = len(text) > LARGEST_SEARCHED
    if not result.too_large:
        with suppress(*_BROKEN):
            document = json.loads(text, parse_float=Number, parse_int=Number, parse_constant=Number)
            result.root = result._within("", document)
    return result


def _kind(value: Any) -> str:
    if isinstance(value, Number):
        return "number"
    return "text" if isinstance(value, str) else "null" if value is None else "boolean"
