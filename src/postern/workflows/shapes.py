"""The types of JSON values as TypedDicts, from one event or from many that differ. Strangers send the values and
choose their names, so everything is bounded and escaped."""

import keyword
import re
from dataclasses import dataclass, field
from typing import Any

DEEPEST = 8
LONGEST_TITLE = 60
MOST_CLASSES = 200
MOST_KEYS = 500
FEW_KEYS = 20
"""An object with more, none of them in every second one, has names that are values themselves: ids, dates."""
TYPING = ("Any", "NotRequired", "TypedDict")
_SCALARS: dict[type, str] = {str: "str", int: "int", float: "float", bool: "bool"}
# Python reads other letters as if they were these (NFKC), and a name with two underscores as another one.
_FIELD = re.compile(r"(?!__)[A-Za-z_][A-Za-z0-9_]*")
_NAME = re.compile(r"[A-Za-z_]\w*")


@dataclass(slots=True)
class JsonShape:
    """The values that were seen at one place."""

    seen: int = 0
    scalars: set[str] = field(default_factory=set)
    has_null: bool = False
    deep: bool = False
    """More than anybody reads was not looked into."""
    objects: int = 0
    members: dict[str, "JsonShape"] = field(default_factory=dict)
    lists: int = 0
    items: "JsonShape | None" = None

    def add(self, value: Any, depth: int = 0) -> None:
        self.seen += 1
        match value:
            case None:
                self.has_null = True
            case bool() | int() | float() | str():
                self.scalars.add(_SCALARS[type(value)])
            case _ if depth > DEEPEST:
                self.deep = True
            case list():
                self.lists += 1
                self.items = self.items or JsonShape()
                for item in value:
                    self.items.add(item, depth + 1)
            case dict():
                self.objects += 1
                for key, inner in value.items():
                    self.members.setdefault(key, JsonShape()).add(inner, depth + 1)
            case _:
                raise TypeError(f"{type(value).__name__} is no part of JSON")

    @property
    def is_mapping(self) -> bool:
        """Its names are no names of fields."""
        most = max((member.seen for member in self.members.values()), default=0)
        return len(self.members) > MOST_KEYS or (len(self.members) > FEW_KEYS and most * 2 <= self.objects)


def shape_of(value: Any) -> JsonShape:
    shape = JsonShape()
    shape.add(value)
    return shape


class Classes:
    """The definitions that types need, each before whoever mentions it."""

    def __init__(self, *, in_order_of_names: bool = False, reserved: tuple[str, ...] = ()) -> None:
        """``reserved``: names that ``define`` is given with ``chosen``."""
        self.definitions: list[str] = []
        self._sorted = in_order_of_names
        self._taken: set[str] = {*TYPING, *reserved}

    @property
    def imported(self) -> list[str]:
        """The names from ``typing`` that the definitions use."""
        without_texts = (re.sub(r'"(?:[^"\\]|\\.)*"', "", text) for text in self.definitions)
        used = {word for text in without_texts for word in _NAME.findall(text)}
        return [name for name in TYPING if name in used or name == "TypedDict"]

    def type_of(self, shape: JsonShape, title: str) -> str:
        kinds = []
        if shape.objects:
            kinds.append(self._object(shape, title))
        if shape.lists:
            inner = shape.items
            kinds.append(f"list[{self.type_of(inner, title) if inner is not None and inner.seen else 'Any'}]")
        kinds += [kind for kind in _SCALARS.values() if kind in shape.scalars]
        if shape.deep or not kinds:
            return "Any"  # of what was null each time nothing else is known
        return " | ".join([*kinds, *(["None"] if shape.has_null else [])])

    def _object(self, shape: JsonShape, title: str) -> str:
        if not shape.members or len(self.definitions) >= MOST_CLASSES:
            return "dict[str, Any]"
        if shape.is_mapping:
            together = JsonShape()
            for member in shape.members.values():
                _merge(together, member)
            return f"dict[str, {self.type_of(together, title)}]"
        return self.define(title, self.fields_of(shape, title))

    def fields_of(self, shape: JsonShape, title: str) -> dict[str, str]:
        names = sorted(shape.members) if self._sorted else list(shape.members)
        fields = {}
        for name in names:
            member = shape.members[name]
            kind = self.type_of(member, title_of(name, title))
            fields[name] = kind if member.seen == shape.objects else f"NotRequired[{kind}]"
        return fields

    def define(self, title: str, fields: dict[str, str], chosen: bool = False) -> str:
        while title in self._taken and not chosen:
            title += "_"
        self._taken.add(title)
        # Within a class a field's name would stand for what is meant by the same word in the types.
        words = {word for kind in fields.values() for word in _NAME.findall(kind)}
        if all(
            _FIELD.fullmatch(name) and not keyword.iskeyword(name) and name not in words for name in fields
        ):
            body = "\n".join(f"    {name}: {kind}" for name, kind in fields.items())
            self.definitions.append(f"class {title}(TypedDict):\n{body}")
        else:
            body = "\n".join(f"        {quoted(name)}: {kind}," for name, kind in fields.items())
            self.definitions.append(f"{title} = TypedDict(\n    {quoted(title)},\n    {{\n{body}\n    }},\n)")
        return title


def _merge(into: JsonShape, other: JsonShape) -> None:
    into.seen += other.seen
    into.scalars |= other.scalars
    into.has_null |= other.has_null
    into.deep |= other.deep
    into.objects += other.objects
    into.lists += other.lists
    for name, member in other.members.items():
        _merge(into.members.setdefault(name, JsonShape()), member)
    if other.items is not None:
        into.items = into.items or JsonShape()
        _merge(into.items, other.items)


def title_of(key: str, parent: str) -> str:
    parts = re.split(r"[\W_]+", key, flags=re.ASCII)
    words = "".join(part[:1].upper() + part[1:] for part in parts)[:LONGEST_TITLE]
    free = words[:1].isalpha() and not keyword.iskeyword(words) and words not in TYPING
    return words if free else f"{parent}{words}"[-LONGEST_TITLE:]


def quoted(text: str) -> str:
    """Escaped beyond ASCII: some characters change the order in which the rest is read."""
    return '"' + re.sub(r"[^ !#-\[\]-~]", _escaped, text) + '"'


def _escaped(match: re.Match[str]) -> str:
    char = match[0]
    return f"\\{char}" if char in '"\\' else char.encode("unicode_escape").decode()
