"""Finds each closed choice of the source (a ``Literal``, an ``Enum``) and each place that says something of its values one by
one: a table, a list of pairs, the fields of a class, the branches of a template, a list in a script of a page, a data file.

They are found by what they say: what shares most of its words with a choice is about that choice.
"""

import ast
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, nodes

SOURCE = Path(__file__).parents[2] / "src" / "postern"
Values = frozenset[str]


class Choice(NamedTuple):
    where: str
    """``core/watch/alarms.py: AlarmKind``."""
    values: Values


class Place(NamedTuple):
    where: str
    values: Values
    is_list: bool = False
    """Whether it could as well be some values that have something in common, as ``("failed", "lost")``."""
    typed: str = ""
    """The choice's name, where the place says it."""


def _called(node: ast.expr | None) -> str:
    return "" if node is None else node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _texts(items: list[Any]) -> Values:
    """The constants, and members of an enum, of a table's keys or a list."""
    found = [one.value if isinstance(one, ast.Constant) else _member(one) for one in items]
    return frozenset(one for one in found if isinstance(one, str))


def _member(node: ast.expr) -> str | None:
    return node.attr if isinstance(node, ast.Attribute) and node.attr.isupper() else None


def _values(node: ast.expr | None, known: dict[str, Values]) -> Values:
    """What a type lets one choose from; nothing where it is no choice."""
    match node:
        case ast.Subscript(value=ast.Name("Literal"), slice=inner):
            items = inner.elts if isinstance(inner, ast.Tuple) else [inner]
            return _texts(items).union(*(known.get(_called(one), Values()) for one in items))
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            one, other = _values(left, known), _values(right, known)
            return one | other if one and other else Values()
        case ast.Name(id=name):
            return known.get(name, Values())
        case _:
            return Values()


def walk(tree: ast.AST, inside: str = "") -> Iterator[tuple[ast.AST, str]]:
    """Each node with the name of what it stands in: a function, a class, the variable that it is given to."""
    for node in ast.iter_child_nodes(tree):
        name = getattr(node, "name", "")
        if isinstance(node, ast.Assign | ast.AnnAssign):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            name = "" if _called(target) in ("", "self") else _called(target)
        here = ".".join(filter(None, (inside, name if isinstance(name, str) else "")))
        yield node, here
        yield from walk(node, here)


def sources() -> dict[str, ast.Module]:
    files = sorted(SOURCE.rglob("*.py"))
    return {str(file.relative_to(SOURCE)): ast.parse(file.read_bytes()) for file in files}


def choices(trees: dict[str, ast.Module]) -> dict[ast.AST, Choice]:
    """Each by the node that a new value is written into."""
    found: dict[ast.AST, Choice] = {}
    for file, tree in trees.items():
        known: dict[str, Values] = {}
        for node, inside in walk(tree):
            if isinstance(node, ast.ClassDef) and any("Enum" in ast.unparse(base) for base in node.bases):
                names = [_called(one.targets[0]) for one in node.body if isinstance(one, ast.Assign)]
                found[node] = Choice(f"{file}: {node.name}", Values(names))
            elif isinstance(node, ast.Assign) and len(values := _values(node.value, known)) > 1:
                known[_called(node.targets[0])] = values
            if isinstance(node, ast.Subscript) and len(values := _values(node, known)) > 1:
                found[node] = Choice(f"{file}: {inside}", values)
    return found


def _places_of_code(file: str, tree: ast.Module) -> Iterator[Place]:
    by_attribute: dict[str, set[str]] = defaultdict(set)
    ignored: set[ast.AST] = set()
    for node, inside in walk(tree):
        where = f"{file}: {inside}"
        match node:
            case ast.AnnAssign(
                annotation=ast.Subscript(slice=ast.Tuple([key, *_])), value=ast.Dict(keys=keys) as table
            ):
                yield Place(where, _texts(keys), typed=_called(key))
                ignored.add(table)
            case ast.Subscript(value=ast.Name("Literal"), slice=inner):
                ignored.add(inner)
            case ast.AnnAssign(target=ast.Name(name), annotation=ast.Subscript(ast.Name("ClassVar"), one)):
                by_attribute[name] |= _values(one, {})
            case ast.Dict(keys=keys) if node not in ignored:
                yield Place(where, _texts(keys))
            case ast.List(elts) | ast.Tuple(elts) | ast.Set(elts) if elts and node not in ignored:
                if all(isinstance(one, ast.Tuple) and one.elts for one in elts):
                    yield Place(where, _texts([one.elts[0] for one in elts]))  # type: ignore[attr-defined]
                else:
                    yield Place(where, _texts(elts), is_list=True)
            case ast.ClassDef(body=body):
                fields = [one.target for one in body if isinstance(one, ast.AnnAssign)]
                yield Place(where, Values(map(_called, fields)))
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from _branches(node, where)
    for name, values in by_attribute.items():
        yield Place(f"{file}: {name} of its classes", Values(values))


def _asked(test: ast.expr) -> Iterator[tuple[str, Values]]:
    match test:
        case ast.Compare(left, [ast.Eq()], [other]):
            yield ast.unparse(left), _texts([other])
        case ast.Compare(left, [ast.In()], [ast.Tuple(elts) | ast.Set(elts) | ast.List(elts)]):
            yield ast.unparse(left), _texts(elts)
        case ast.BoolOp(values=values):
            for one in values:
                yield from _asked(one)


def _branches(function: ast.AST, where: str) -> Iterator[Place]:
    """What a function asks one after the other, and a ``match`` that has a branch for all others: mypy says nothing there."""
    asked: dict[str, set[str]] = defaultdict(set)
    for node in ast.walk(function):
        if isinstance(node, ast.If | ast.IfExp):
            for what, values in _asked(node.test):
                asked[f"if {what}"] |= values
        if isinstance(node, ast.Match) and any(ast.unparse(one.pattern) == "_" for one in node.cases):
            patterns = [inner for one in node.cases for inner in ast.walk(one.pattern)]
            chosen = _texts([one.value for one in patterns if isinstance(one, ast.MatchValue)])
            asked[f"match {ast.unparse(node.subject)}"] |= chosen
    for what, words in asked.items():
        if len(words) > 2:
            yield Place(f"{where}: {what}", Values(words))


def _places_of_template(file: str, text: str) -> Iterator[Place]:
    tree = Environment(extensions=["jinja2.ext.do", "jinja2.ext.loopcontrols"]).parse(text)

    def texts(items: list[Any]) -> Values:
        return Values(
            one.value for one in items if isinstance(one, nodes.Const) and isinstance(one.value, str)
        )

    for node in tree.find_all((nodes.Dict, nodes.List, nodes.Tuple)):
        if isinstance(node, nodes.Dict):
            yield Place(file, texts([one.key for one in node.items]))
        elif node.items and all(isinstance(one, nodes.Tuple) for one in node.items):
            yield Place(file, texts([one.items[0] for one in node.items]))
        else:
            yield Place(file, texts(node.items), is_list=True)
    asked: dict[str, set[str]] = defaultdict(set)
    for test in tree.find_all(nodes.Compare):
        asked[repr(test.expr)] |= texts([one.expr for one in test.ops if one.op == "eq"])
    for values in asked.values():
        if len(values) > 2:
            yield Place(f"{file}: its branches", Values(values))


def places(trees: dict[str, ast.Module]) -> Iterator[Place]:
    for file, tree in trees.items():
        yield from _places_of_code(file, tree)
    for path in sorted(SOURCE.rglob("*.*")):
        file = str(path.relative_to(SOURCE))
        if path.suffix == ".html":
            yield from _places_of_template(file, path.read_text("utf-8"))
            asked: dict[str, set[str]] = defaultdict(set)
            for name, value in re.findall(r'data-when="(\w+):(\w+)', path.read_text("utf-8")):
                asked[name].add(value)
            for name, values in asked.items():
                yield Place(f"{file}: data-when {name}", Values(values))
        elif path.suffix == ".js" and "vendor" not in path.parts:
            for listed in re.findall(r"\[((?:\"[\w-]+\", )+\"[\w-]+\")\]", path.read_text("utf-8")):
                yield Place(file, Values(re.findall(r"[\w-]+", listed)), is_list=True)
        elif path.suffix == ".toml" and "presets" not in path.parts:
            yield Place(file, Values(tomllib.loads(path.read_text("utf-8"))))


def is_about(place: Place, choice: Choice) -> bool:
    shared = len(place.values & choice.values)
    if shared and place.typed and place.typed == choice.where.split(": ")[1]:
        return True
    if place.is_list:  # all but one, as when one has come
        return shared > 2 and shared >= len(choice.values) - 1 and shared == len(place.values)
    return shared > 1 and shared >= len(choice.values) / 2 and shared >= len(place.values) * 0.7
