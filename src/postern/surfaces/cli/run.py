"""How a command runs a use case, prints what came of it, and ends: exit codes that mean something."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Annotated, Any, NoReturn, TextIO, TypeVar

import typer
from rich.console import Console
from rich.table import Table

from postern.core.access.accounts import Actor
from postern.core.history.invocation import StoreUnavailable
from postern.core.problems import Refused
from postern.usecases.answers import Listing, as_plain
from postern.usecases.runtime.gateway import Gateway

T = TypeVar("T")

NARROWEST = 24
"""Characters that a column of sentences has at least."""

OK, FAILED, USAGE, NOT_FOUND, CONFLICT, UNAVAILABLE, DIFFERS = 0, 1, 2, 3, 4, 5, 6
EXIT_CODES = "0 done · 1 failed · 2 wrong usage or invalid values · 3 not found · 4 the present state does not allow it · 5 store or engine not reachable · 6 a dry run found something to change"


def _json_asked(asked: bool) -> bool:
    session.as_json = asked
    return asked


Json = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.", callback=_json_asked)]
Limit = Annotated[int, typer.Option(help="How many.")]
Cursor = Annotated[str | None, typer.Option(help="Go on where a page ended (nextCursor).")]

# Whoever may open the database file may do everything anyway.
ACTOR = Actor("command line", "admin")

# In a pipe a line is a row however long it is: ids that were folded could not be copied or cut.
out = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else 1000)
err = Console(stderr=True, highlight=False, soft_wrap=True)

Opened = Callable[[], AbstractAsyncContextManager[Gateway]]


class Session:
    """What every command needs: how to open a gateway; `make_cli` is given it."""

    open: Opened
    as_json: bool = False
    """The command was typed with --json: what goes wrong is told as JSON, too."""

    def run(self, use_case: Callable[[Gateway], Awaitable[T]]) -> T:
        async def inside() -> T:
            async with self.open() as gateway:
                return await use_case(gateway)

        try:
            return asyncio.run(inside())
        except Refused as refused:
            end(
                refused.detail or refused.problem.help,
                _exit_code(refused),
                refused.code,
                {error.field: error.message for error in refused.errors},
            )
        except StoreUnavailable as trouble:
            end(f"The database cannot be used: {trouble}", UNAVAILABLE)


session = Session()


def _exit_code(refused: Refused) -> int:
    return {404: NOT_FOUND, 409: CONFLICT, 412: CONFLICT, 422: USAGE, 400: USAGE, 503: UNAVAILABLE}.get(
        refused.problem.status, FAILED
    )


def end(message: str, status: int, code: str = "", fields: dict[str, str] | None = None) -> NoReturn:
    fields = fields or {}
    if session.as_json:
        told: dict[str, Any] = {"code": code or None, "detail": message}
        told["errors"] = [{"field": field, "message": problem} for field, problem in fields.items()]
        show_json(told, sys.stderr)
    else:
        lines = [f"  {field}: {problem}" for field, problem in fields.items()]
        err.print("\n".join([message, *lines]), style="red", markup=False)
    sys.exit(status)


def show_json(value: Any, stream: TextIO | None = None) -> None:
    stream = stream or sys.stdout
    text = json.dumps(as_plain(value), ensure_ascii=False, indent=2)
    # What cannot be seen can still move a terminal, and strangers write into the history.
    stream.write("".join(char if char.isprintable() or char == "\n" else _escaped(char) for char in text))
    stream.write("\n")


def _escaped(char: str) -> str:
    return json.dumps(char)[1:-1]


def report(done: Any, text: str, as_json: bool) -> None:
    """What a command did: a line for people, the whole answer for scripts."""
    if as_json:
        show_json(done)
    else:
        out.print(plain(text))


def show(found: Any, as_json: bool) -> None:
    if as_json:
        show_json(found)
    else:
        show_tree(as_plain(found))


def show_page(
    page: Listing[T],
    as_json: bool,
    columns: list[str],
    when_empty: str,
    row: Callable[[T], list[Any]] | None = None,
) -> None:
    """Without ``row`` the columns are the names of what is shown."""
    if as_json:
        show_json(page)
        return
    rows = [row(one) if row else [as_plain(one)[column] for column in columns] for one in page.items]
    show_table(columns, rows, when_empty)
    if page.next_cursor:
        err.print(f"There are more: --cursor {page.next_cursor}", markup=False)


def show_table(columns: list[str], rows: list[list[Any]], when_empty: str) -> None:
    if not rows:
        out.print(when_empty, markup=False)
        return
    shown = [["" if cell is None else str(cell) for cell in row] for row in rows]
    # Ids and URLs are there to be copied: a terminal that is too narrow breaks a line by itself, and copies it
    # whole. Only sentences are folded.
    folded = [any(" " in row[place] for row in shown) for place in range(len(columns))]
    least = [
        NARROWEST if folded[place] else max(len(text) for text in (name, *(row[place] for row in shown)))
        for place, name in enumerate(columns)
    ]
    table = Table(
        box=None, pad_edge=False, header_style="bold", width=max(out.width, sum(least) + 2 * len(least))
    )
    for column, fold in zip(columns, folded, strict=True):
        table.add_column(column, overflow="fold", no_wrap=not fold)
    for row in shown:
        table.add_row(*map(plain, row))
    out.print(table)


def plain(text: str) -> str:
    """A stranger's text on a terminal: no escape sequences, no markup."""
    return "".join(char if char.isprintable() else "·" for char in text).replace("[", "\\[")


def show_tree(value: Any, indent: int = 0) -> None:
    """A nested answer as indented lines, for reading."""
    pad = "  " * indent
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for name, one in items:
        if isinstance(one, dict | list) and one and not _is_flat(one):
            out.print(f"{pad}[bold]{plain(str(name))}[/bold]")
            show_tree(one, indent + 1)
        else:
            shown = (
                json.dumps(one, ensure_ascii=False)
                if isinstance(one, dict | list)
                else ""
                if one is None
                else str(one)
            )
            out.print(f"{pad}[bold]{plain(str(name))}[/bold]  {plain(shown)}")


def _is_flat(value: Any) -> bool:
    return isinstance(value, list) and all(not isinstance(one, dict | list) for one in value)
