"""Recorded calls to be taken along: the body of one, the whole of it, as a command or a program; and a filtered list for a
spreadsheet or a program.

Strangers wrote all of it. So a browser saves it instead of showing it, and what it shows is plain text in a sandbox:
nothing of it ever runs as a page of the console.
"""

import csv
import io
import re
from base64 import b64decode
from collections.abc import AsyncIterator, Iterable

from starlette.responses import Response, StreamingResponse

from postern.core.history.invocation import HistoryFilter
from postern.core.problems import Refused
from postern.surfaces.console.bodies import ENDINGS, kind_of
from postern.surfaces.console.visit import Visit
from postern.usecases.answers import as_json, as_plain
from postern.usecases.history import fixtures, history
from postern.usecases.history.code import LANGUAGES
from postern.usecases.history.views.requests import as_file, file_name
from postern.usecases.summary import InvocationSummary

MOST_CALLS = 10_000
CALLS_AT_ONCE = 50
"""Calls of a list: in all, and read at a time."""
_FORMULA = re.compile(r"\A(?=\s*[=+\-@＝＋－＠])|(?<=[;\t\r\n])(?=[^\S\t\r\n]*[=+\-@＝＋－＠])")
"""The places where a formula would begin."""
FORMATS = {"csv": "text/csv; charset=utf-8", "jsonl": "application/jsonl; charset=utf-8"}
COLUMNS = (
    "id", "receivedAt", "webhookId", "status", "code", "httpStatus", "event", "values",
    "method", "address", "bodySize", "durationMs", "runState", "detail",
)  # fmt: skip

SANDBOXED = {
    "content-security-policy": "sandbox; default-src 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


async def body(visit: Visit) -> Response:
    """Every byte that is kept, whatever it says it is."""
    recorded = await visit.ask(history.request, visit.at("invocation"))
    if recorded.body_base64 is None:
        raise Refused("not_found", "The body of this call is no longer kept.")
    content = b64decode(recorded.body_base64)
    ending = ENDINGS.get(kind_of(recorded.headers, content), "bin")
    return _saved(content, "application/octet-stream", f"body-{recorded.invocation_id[-8:]}.{ending}")


async def whole(visit: Visit) -> Response:
    """The API's answer about the call, with its body to the byte."""
    item = await visit.ask(history.show, visit.at("invocation"))
    sent = await visit.ask(history.request, item.id)
    whole = as_plain(item) | {"bodyBase64": sent.body_base64}
    return _saved(as_json(whole), "application/json", f"call-{item.id[-8:]}.json")


async def fixture(visit: Visit) -> Response:
    """The file that `postern history save` writes."""
    invocation_id = visit.at("invocation")
    recorded = await visit.ask(fixtures.fixture, invocation_id)
    name = f"{file_name(recorded, invocation_id)}.json"
    return _saved(as_file(recorded).encode(), "application/json", name)


async def code(visit: Visit) -> Response:
    """Copied by a button; shown where there is no JavaScript."""
    language = next((name for name in LANGUAGES if name == visit.at("language")), None)
    if language is None:
        raise Refused("not_found", f"Choose one of: {', '.join(LANGUAGES)}.")
    text = await visit.ask(history.as_code, visit.at("invocation"), language)
    return Response(text, headers=SANDBOXED, media_type="text/plain; charset=utf-8")


def _saved(content: bytes, kind: str, name: str) -> Response:
    """The name is ours: nothing that was sent stands in a header."""
    headers = SANDBOXED | {"content-disposition": f'attachment; filename="{name}"'}
    return Response(content, headers=headers, media_type=kind)


async def lines_of_list(visit: Visit, criteria: HistoryFilter, form: str) -> AsyncIterator[str]:
    left, cursor = MOST_CALLS, None
    while left > 0:
        async with visit.gateway.runtime.exporting:
            page = await visit.ask(history.listing, criteria, min(CALLS_AT_ONCE, left), cursor)
            text = "".join(_line(item, form) for item in page.items)
        yield text
        left, cursor = left - len(page.items), page.next_cursor
        if cursor is None:
            return


def list_as_file(form: str, first: str, rest: AsyncIterator[str]) -> Response:
    async def text() -> AsyncIterator[str]:
        yield (_csv(COLUMNS) if form == "csv" else "") + first
        async for lines in rest:
            yield lines

    headers = {
        "content-disposition": f'attachment; filename="calls.{form}"',
        "cache-control": "no-store",
        "x-content-type-options": "nosniff",
    }
    return StreamingResponse(text(), headers=headers, media_type=FORMATS[form])


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
