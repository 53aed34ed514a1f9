"""Actions beside reading a call: mark it, write notes, compare it, start its workflow with a changed copy."""

from msgspec import Struct
from starlette.responses import Response

from postern.core.deliveries.delivery import FIELD_NAMES
from postern.core.history.compare import Difference
from postern.core.history.replay import Values
from postern.core.problems import Refused
from postern.surfaces.console import bodies
from postern.surfaces.console.views.history import story
from postern.surfaces.console.views.history.call import told
from postern.surfaces.console.views.history.sent import FIELD_LABELS
from postern.surfaces.console.visit import PageValues, Visit, whole_number
from postern.usecases.history import comparing, editing, history, marks
from postern.usecases.history.views.calls import Comparison, Invocation

DIFFERENCES = 50
"""On one page."""

LARGEST_EDITED = 512 * 1024
"""A page with more of it in a field is slow everywhere; the API takes more."""


async def bookmark(visit: Visit) -> Response:
    form = await visit.form()
    invocation = visit.at("invocation")
    if form.text("bookmark") == "off":
        await visit.ask(marks.remove_bookmark, invocation)
        return await told(visit, "unmarked")
    await visit.ask(marks.bookmark, invocation)
    return await told(visit, "marked")


async def note(visit: Visit) -> Response:
    form = await visit.form()
    invocation = visit.at("invocation")
    try:
        await visit.ask(marks.add_note, invocation, form.text("text"))
    except Refused as refused:
        if refused.code == "not_found":
            raise
        return visit.again(refused, "call/page.html", **await story.context(visit, invocation))
    return await told(visit, part="#notes")


async def delete_note(visit: Visit) -> Response:
    invocation = visit.at("invocation")
    await visit.ask(marks.delete_note, invocation, visit.at("note"))
    return await told(visit, part="#notes")


async def compare(visit: Visit) -> Response:
    item = await visit.ask(history.show, visit.at("invocation"))
    to = visit.query.get("to", "").strip()
    comparison, trouble = None, ""
    try:
        comparison = await visit.ask(comparing.compared, item.id, to or None)
    except Refused as refused:
        if refused.code not in ("not_found", "invalid_request"):
            raise
        detail = refused.detail or refused.problem.help
        trouble = detail[:1].upper() + detail[1:].rstrip(".") + "."
    first = whole_number(visit.query.get("from", "")) or 0
    parts, further = _on_one_page(comparison, first) if comparison else ([], None)
    return visit.page(
        "call/compare.html",
        item=item,
        found=comparison,
        to=to,
        trouble=trouble,
        parts=parts,
        first=first,
        further=further,
    )


class DifferencePart(Struct, frozen=True):
    title: str
    what: str
    count: int
    """Differences of this part, on all pages."""
    rows: list[Difference]


def _on_one_page(comparison: Comparison, first: int) -> tuple[list[DifferencePart], int | None]:
    """The differences after so many, and after how many the next page begins."""
    parts: list[DifferencePart] = []
    passed, end = 0, first + DIFFERENCES
    for title, what, differences in (
        ("Request", "Part", comparison.request),
        ("Query", "Name", comparison.query),
        ("Mapped values", "Field", comparison.values),
        ("Headers", "Header", comparison.headers),
        ("Body", "Path" if comparison.body.compared == "json" else "Line", comparison.body),
    ):
        if rows := differences.items[max(0, first - passed) : max(0, end - passed)]:
            parts.append(DifferencePart(title, what, differences.count, rows))
        passed += len(differences.items)
    return parts, end if end < passed else None


async def edit(visit: Visit) -> Response:
    return visit.page("call/edit.html", **await _form(visit))


async def _form(visit: Visit) -> PageValues:
    item = await visit.ask(history.show, visit.at("invocation"))
    body, why = _editable(item)
    first = item.deliveries[0].fields if item.deliveries else {}
    return {
        "item": item,
        "body": body,
        "why_no_body": why,
        "fields": FIELD_LABELS,
        "fields_from": "current",
        "recorded": first,
    }


def _editable(item: Invocation) -> tuple[str | None, str]:
    if item.body is None:
        return None, "The body is no longer kept: there is nothing to replay."
    if "\ufffd" in item.body:
        return None, "The body holds bytes that are no text, so it cannot be edited here. Values can."
    if len(item.body) > LARGEST_EDITED:
        return None, "The body is too large to be edited on a page; the API takes it. Values can be set here."
    indented = bodies.pretty(item.body.encode())
    return indented if 0 < len(indented) <= LARGEST_EDITED else item.body, ""


async def replay_edited(visit: Visit) -> Response:
    form = await visit.form()
    shown = await _form(visit)
    typed = form.get("body")
    body = None if typed is None else _as_edited(typed, shown["body"] or "")
    values = {name: value for name in FIELD_NAMES if (value := form.get(f"value-{name}", ""))}
    fields_from: Values = "recorded" if form.text("fields") == "recorded" else "current"
    try:
        done = await visit.ask(
            editing.replay_edited, shown["item"].id, body=body, values=values, fields=fields_from
        )
    except Refused as refused:
        if refused.code not in ("invalid_request", "conflict", "payload_too_large"):
            raise
        kept = {"fields_from": fields_from, "values": values} | ({} if typed is None else {"body": typed})
        return visit.again(refused, "call/edit.html", **shown | kept)
    is_held = done.delivery.state == "held"
    return visit.to(f"/calls/{done.invocation_id}", "replayed-edited-held" if is_held else "replayed-edited")


def _as_edited(typed: str, shown: str) -> str | None:
    """None if nothing was changed: the copy then has the bytes that came. A browser sends every line end as CR LF."""
    plain = typed.replace("\r\n", "\n")
    if plain == shown.replace("\r\n", "\n").replace("\r", "\n"):
        return None
    return plain.replace("\n", "\r\n") if shown.count("\r\n") == shown.count("\n") > 0 else plain
