"""What a bug is: one operator, constant, condition or statement that is another one."""

import ast
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
SOURCE = ROOT / "src" / "postern"

SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}


@dataclass(frozen=True)
class Edit:
    """One place of a tree holds something else."""

    holder: Any
    place: str | int
    new: object

    def swap(self) -> "Edit":
        """Done; and how to take it back."""
        if isinstance(self.place, int):
            old, self.holder[self.place] = self.holder[self.place], self.new
        else:
            old = getattr(self.holder, self.place)
            setattr(self.holder, self.place, self.new)
        return Edit(self.holder, self.place, old)


@dataclass(frozen=True)
class Mutant:
    file: str
    """As in `core/limits.py`."""
    line: int
    change: str
    """The function it is in, and how it reads without and with the bug; so `mutants.toml` names it, too."""
    lines: tuple[int, int]
    on_import: bool
    """It runs when the module is imported."""
    number: int
    """Which of the file's bugs it is."""


@dataclass
class Planter:
    """Walks one module and finds what could be planted in it."""

    file: str
    tree: ast.Module
    mutants: list[Mutant] = field(default_factory=list)
    edits: list[Edit] = field(default_factory=list)

    def walk(self) -> "Planter":
        self._body("", self.tree.body)
        return self

    def _offer(self, shown: ast.AST, edit: Edit, around: ast.stmt, where: str) -> None:
        before = _text(shown)
        undo = edit.swap()
        after = _text(
            edit.new if isinstance(edit.new, ast.stmt | ast.expr) and edit.place != "operand" else shown
        )
        undo.swap()
        body = getattr(around, "body", None)
        last = body[0].lineno - 1 if body else around.end_lineno
        first = getattr(shown, "lineno", around.lineno)
        self.mutants.append(
            Mutant(
                self.file,
                first,
                f"{where or 'module'}: {before} -> {after}",
                (min(first, around.lineno), max(last or first, first)),
                not where or isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef),
                len(self.mutants),
            )
        )
        self.edits.append(edit)

    def _body(self, where: str, body: list[ast.stmt]) -> None:
        for number, statement in enumerate(body):
            self._statement(body, number, statement, where)

    def _statement(self, body: list[ast.stmt], number: int, node: ast.stmt, where: str) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for default in [*node.args.defaults, *(one for one in node.args.kw_defaults if one)]:
                self._expression(default, node, where)
            self._body(f"{where}.{node.name}".lstrip("."), node.body)
            return
        if isinstance(node, ast.ClassDef):
            self._body(f"{where}.{node.name}".lstrip("."), node.body)
            return
        if isinstance(node, ast.Import | ast.ImportFrom | ast.Assert | ast.Pass):
            return
        if _is_docstring(node) or _is_about_types(node) or _is_logging(node):
            return

        if (other := _instead_of(node)) is not None:
            self._offer(node, Edit(body, number, ast.copy_location(other, node)), node, where)
        if isinstance(node, ast.If | ast.While):
            self._condition(node, node, where)
        for part in ast.iter_child_nodes(node):
            if isinstance(part, ast.expr) and part is not getattr(node, "annotation", None):
                self._expression(part, node, where)
            elif isinstance(part, ast.withitem):
                self._expression(part.context_expr, node, where)
            elif isinstance(part, ast.match_case):
                if part.guard is not None:
                    self._expression(part.guard, node, where)
                self._body(where, part.body)
            elif isinstance(part, ast.ExceptHandler):
                self._body(where, part.body)
        for inner in ("body", "orelse", "finalbody"):
            statements = getattr(node, inner, None)
            if isinstance(statements, list):
                self._body(where, statements)

    def _condition(self, node: ast.If | ast.While | ast.IfExp, around: ast.stmt, where: str) -> None:
        values = (False,) if isinstance(node, ast.While) else (True, False)  # it would never end
        for value in values if not isinstance(node.test, ast.Constant) else ():
            constant = ast.copy_location(ast.Constant(value), node.test)
            self._offer(node.test, Edit(node, "test", constant), around, where)

    def _expression(self, node: ast.expr, around: ast.stmt, where: str) -> None:
        if isinstance(node, ast.JoinedStr):
            return  # words
        if isinstance(node, ast.Compare):
            for number, operator in enumerate(node.ops):
                if other := SWAPPED.get(type(operator)):
                    self._offer(node, Edit(node.ops, number, other()), around, where)
        elif isinstance(node, ast.BoolOp | ast.BinOp):
            if other := SWAPPED.get(type(node.op)):
                self._offer(node, Edit(node, "op", other()), around, where)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            # Taken away by another one: what holds this node need not be known.
            twice = ast.copy_location(ast.UnaryOp(ast.Not(), node.operand), node)
            self._offer(node, Edit(node, "operand", twice), around, where)
        elif isinstance(node, ast.IfExp):
            self._condition(node, around, where)
        elif isinstance(node, ast.Constant) and (value := _another(node.value)) is not None:
            self._offer(node, Edit(node, "value", value), around, where)
        for part in ast.iter_child_nodes(node):
            if isinstance(part, ast.expr):
                self._expression(part, around, where)
            elif isinstance(part, ast.keyword):
                self._expression(part.value, around, where)
            elif isinstance(part, ast.comprehension):
                for inner in (part.iter, *part.ifs):
                    self._expression(inner, around, where)


def _instead_of(node: ast.stmt) -> ast.stmt | None:
    match node:
        case ast.Raise() | ast.AugAssign():
            return ast.Pass()
        case ast.Expr() if not isinstance(node.value, ast.Yield):
            return ast.Pass()
        case ast.Continue():
            return ast.Break()
        case ast.Break():
            return ast.Continue()
        case ast.Return() if node.value is not None and not _is_as_nothing(node.value):
            return ast.Return(ast.Constant(None))
    return None


def _another(value: object) -> object:
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str() if value and " " not in value:
            return value + "_"
        case bytes() if value:
            return value + b"_"
    return None  # nothing, and sentences: what exactly they say is nobody's promise


def _text(node: ast.AST) -> str:
    return " ".join(ast.unparse(node).split())[:160]


def _is_as_nothing(node: ast.expr) -> bool:
    """Whoever asks whether it is true has the same answer from None. That False might be True is a bug of its own."""
    return isinstance(node, ast.Constant) and (node.value is None or node.value is False)


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_about_types(node: ast.stmt) -> bool:
    """`Kind = Literal["a", "b"]`, `T = TypeVar("T")`, `__slots__ = …`."""
    if isinstance(node, ast.If):
        return "TYPE_CHECKING" in ast.unparse(node.test)
    if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
        return False
    target = node.targets[0] if isinstance(node, ast.Assign) else node.target
    text = ast.unparse(node.value)
    return (isinstance(target, ast.Name) and target.id in ("__slots__", "__all__")) or text.startswith(
        ("Literal[", "TypeVar(", "ParamSpec(", "Callable[", "Annotated[", "dict[", "list[", "tuple[")
    )


def _is_logging(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and ast.unparse(node.value.func).startswith("log.")
    )


def parsed(file: str) -> Planter:
    return Planter(file, ast.parse((SOURCE / file).read_text(), file)).walk()


def planted(mutant: Mutant) -> CodeType:
    planter = parsed(mutant.file)
    planter.edits[mutant.number].swap()
    return compile(ast.fix_missing_locations(planter.tree), str(SOURCE / mutant.file), "exec")


def module_of(mutant: Mutant) -> str:
    """As it is imported."""
    return ("postern." + mutant.file.removesuffix(".py").replace("/", ".")).removesuffix(".__init__")
