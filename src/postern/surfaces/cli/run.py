"""The output of commands, and their exit codes."""

import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NoReturn, TextIO, TypeVar

import click

from postern.core.documents import Document
from postern.core.moment import moment
from postern.core.problems import PROBLEMS
from postern.core.visible import visible
from postern.surfaces.cli.terminal import Style, counted, err, out, plain, table
from postern.usecases.answers import Listing, as_plain

T = TypeVar("T")

OK, FAILED, USAGE, NOT_FOUND, CONFLICT, UNAVAILABLE, DIFFERS, NOT_ALLOWED = 0, 1, 2, 3, 4, 5, 6, 7
INTERRUPTED = 130
EXIT_CODES = "0 done · 1 failed · 2 wrong usage or invalid values · 3 not found · 4 the current state does not allow it · 5 gateway, store or engine not reachable · 6 a dry run found something to change · 7 the API key is not known, or may not do this"


__all__ = ["counted", "err", "out", "plain"]  # most commands print by themselves as well


def time_of(text: str, option: str) -> float:
    """Reads a time from an option that the gateway does not read."""
    try:
        return moment(text, time.time())
    except ValueError as error:
        end(f"{option}: {error}")


def end(message: str, status: int = USAGE, code: str = "", fields: dict[str, str] | None = None) -> NoReturn:
    fields = fields or {}
    if out.as_json:  # what goes wrong is then JSON, too
        show_problem(message, code, fields)
    else:
        # "Under errors" is where an answer names them.
        if fields and message == PROBLEMS["invalid_request"].help:
            message = "One or more fields are wrong:"
        for line in [message, *(f"  {field}: {problem}" for field, problem in fields.items())]:
            err.print(visible(line), "red")  # names in a file, or a gateway's words
    sys.exit(status)


def show_problem(message: str, code: str, fields: dict[str, str]) -> None:
    problem: Document = {"code": code or None, "detail": message}
    problem["errors"] = [{"field": field, "message": text} for field, text in fields.items()]
    show_json(problem, sys.stderr)


def show_json(value: Any, stream: TextIO | None = None) -> None:
    stream = stream or sys.stdout
    # A workflow's answer may hold half a character: it is plain already.
    with suppress(UnicodeEncodeError):
        value = as_plain(value)
    text = json.dumps(value, ensure_ascii=False, indent=2)
    # Characters that cannot be seen can still move a terminal, and strangers write into the history.
    stream.write("".join(char if char.isprintable() or char == "\n" else _escaped(char) for char in text))
    stream.write("\n")


def show_json_line(value: Any) -> None:
    """Prints one line of many, for a program that reads them as they come."""
    text = json.dumps(as_plain(value), ensure_ascii=False)
    sys.stdout.write("".join(char if char.isprintable() else _escaped(char) for char in text) + "\n")
    sys.stdout.flush()


def _escaped(char: str) -> str:
    return json.dumps(char)[1:-1]


def for_programs(value: Any) -> None:
    """Prints JSON if --json is given. Text for people is left out then."""
    if out.as_json:
        show_json(value)


def report(done: Any, text: str) -> None:
    """Prints what a command did: a line for people, the whole answer for scripts."""
    for_programs(done)
    out.print(plain(text))


def note(text: str, style: Style = "") -> None:
    """Prints a line for people on standard error. With --json the answer itself holds it."""
    if not out.as_json:
        err.print(text, style)


def confirm(question: str, yes: bool) -> None:
    """Ends the command unless the user agrees. --yes and --json count as agreeing."""
    if not (yes or out.as_json):
        click.confirm(question, abort=True)


def show(value: Any) -> None:
    for_programs(value)
    show_tree(as_plain(value))


def show_page(
    page: Listing[T], when_empty: str, columns: Sequence[str] | Mapping[str, str | Callable[[T], Any]]
) -> None:
    """``columns``: by its title, the field's name in JSON or a function of the row. A list of names: these are
    the titles as well."""
    for_programs(page)
    shown = columns if isinstance(columns, Mapping) else {name: name for name in columns}
    rows = [
        [plain_row.get(cell) if isinstance(cell, str) else cell(item) for cell in shown.values()]
        for item, plain_row in ((item, as_plain(item)) for item in page.items)
    ]
    show_table([*shown], rows, when_empty)
    if page.next_cursor:
        note(f"There are more: --cursor {page.next_cursor}")


def show_table(columns: list[str], rows: list[list[Any]], when_empty: str) -> None:
    if not rows:
        if when_empty:
            out.print(when_empty)
        return
    shown = [["" if cell is None else str(cell) for cell in row] for row in rows]
    head, *lines = table(columns, [list(map(plain, row)) for row in shown], out.width)
    out.print(head, "bold")
    for line in lines:
        out.print(line)


def show_tree(value: Any, indent: int = 0) -> None:
    """Prints a nested answer as indented lines, without fields that are not set."""
    pad = "  " * indent
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for name, member in items:
        if not _is_set(member):
            continue
        is_flat = isinstance(member, list) and all(not isinstance(each, dict | list) for each in member)
        if isinstance(member, dict | list) and not is_flat:
            out.print(pad + out.styled(plain(str(name)), "bold"))
            show_tree(member, indent + 1)
        else:
            shown = json.dumps(member, ensure_ascii=False) if is_flat else str(member)
            out.print(f"{pad}{out.styled(plain(str(name)), 'bold')}  {plain(shown)}")


def _is_set(value: Any) -> bool:
    """Whether this field is set, or any of the fields in it."""
    return any(map(_is_set, value.values())) if isinstance(value, dict) else value not in (None, "", [])
