"""A filtered list of calls as a file, for a spreadsheet or a program."""

import csv
import io
import re
from collections.abc import AsyncIterator, Iterable

from starlette.responses import Response, StreamingResponse

from postern.core.history.invocation import HistoryFilter
from postern.surfaces.console.visit import Visit
from postern.usecases.answers import as_json, as_plain
from postern.usecases.history import history
from postern.usecases.summary import InvocationSummary

MOST = 10_000
AT_ONCE = 50
_FORMULA = re.compile(r"\A(?=\s*[=+\-@＝＋－＠])|(?<=[;\t\r\n])(?=[^\S\t\r\n]*[=+\-@＝＋－＠])")
"""The places where a formula would begin."""
FORMATS = {"csv": "text/csv; charset=utf-8", "jsonl": "application/jsonl; charset=utf-8"}
COLUMNS = (
    "id", "receivedAt", "webhookId", "status", "code", "httpStatus", "event", "values",
    "method", "address", "bodySize", "durationMs", "runState", "detail",
)  # fmt: skip


async def lines(visit: Visit, wanted: HistoryFilter, form: str) -> AsyncIterator[str]:
    left, cursor = MOST, None
    while left > 0:
        async with visit.gateway.runtime.exporting:
            page = await history.listing(visit.gateway, visit.actor, wanted, min(AT_ONCE, left), cursor)
            text = "".join(_line(item, form) for item in page.items)
        yield text
        left, cursor = left - len(page.items), page.next_cursor
        if cursor is None:
            return


def answer(form: str, first: str, rest: AsyncIterator[str]) -> Response:
    async def body() -> AsyncIterator[str]:
        yield (_csv(COLUMNS) if form == "csv" else "") + first
        async for one in rest:
            yield one

    headers = {
        "content-disposition": f'attachment; filename="calls.{form}"',
        "cache-control": "no-store",
        "x-content-type-options": "nosniff",
    }
    return StreamingResponse(body(), headers=headers, media_type=FORMATS[form])


def _line(item: InvocationSummary, form: str) -> str:
    plain = as_plain(item)
    if form == "jsonl":
        return as_json(plain).decode() + "\n"
    plain["values"] = "; ".join(plain["fields"].values())
    return _csv([plain.get(name) for name in COLUMNS])


def _csv(cells: Iterable[object]) -> str:
    text = io.StringIO()
    csv.writer(text).writerow([_cell(cell) for cell in cells])
    return text.getvalue()


def _cell(value: object) -> str:
    """A spreadsheet takes what begins so for a formula, and strangers write into the history. Some leave out blanks
    before it, and some take the wide signs of East Asian keyboards. Where the system's list separator is a semicolon, as in much of
    Europe, a cell begins after each one in the text."""
    if value is None or isinstance(value, int | float):
        return "" if value is None else str(value)
    return _FORMULA.sub("'", str(value))
