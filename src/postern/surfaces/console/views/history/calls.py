"""What happened: the list with its filters in the URL, one call's story, and having it happen again."""

from collections.abc import Collection, Mapping
from functools import wraps
from urllib.parse import parse_qsl, urlencode

from msgspec import Struct
from msgspec.structs import replace
from starlette.responses import Response

from postern.core.deliveries.delivery import FIELD_NAMES
from postern.core.deliveries.replay import Values
from postern.core.history.invocation import STATUSES, HistoryFilter, StoreUnavailable
from postern.core.history.part import looks_into_calls
from postern.core.problems import FieldError, Refused
from postern.identity import time_of
from postern.surfaces.console import looks, words
from postern.surfaces.console.views import picker
from postern.surfaces.console.views.history import exported, fixes, sentences, story
from postern.surfaces.console.visit import STORE_AWAY, Form, View, Visit, problem_of, read_pairs, whole_number
from postern.surfaces.leaving import while_connected
from postern.usecases.answers import Time
from postern.usecases.calls import readmission
from postern.usecases.history import findable, history, samples, saved_views
from postern.usecases.history.filters import filter_of
from postern.usecases.history.views.calls import InvocationSummary
from postern.usecases.listeners import listeners
from postern.usecases.signatures import remedies
from postern.usecases.webhooks import picking, webhooks

LONGEST_TRAIL = 20
"""Pages that one can go back."""

SPANS = {"": "Any time", "3600": "Last hour", "86400": "Last 24 hours", "604800": "Last 7 days"}
ANSWERS = {
    "": "Every answer",
    "2xx": "Answered 2xx",
    "4xx": "Answered 4xx",
    "5xx": "Answered 5xx",
    "502": "Answered 502, the workflow failed",
    "504": "Answered 504, no answer in time",
    "gone": "The caller had left",
}
FILTERS = (
    *("webhook", "status", "code", "answer", "span", "since", "until"),
    *("search", "value", "address", "header", "field", "marked", "replay"),
)
MORE_FILTERS = ("header", "field", "address", "since", "until", "replay")


class Row(Struct, frozen=True):
    """A call, and its duplicates on the same page."""

    item: InvocationSummary
    duplicates: list["Row"]


def rows_of(visit: Visit, items: list[InvocationSummary]) -> list[Row]:
    made = {item.id: Row(item, []) for item in items}
    if not looks.of(visit.request).folded:
        return list(made.values())
    first_of: dict[str, Row] = {}
    shown = []
    for row in made.values():
        first = row.item.duplicate_of
        above = first_of.get(first or row.item.id) or (made.get(first) if first else None)
        if first and above is not None:
            above.duplicates.append(row)
            continue
        first_of[first or row.item.id] = row
        shown.append(row)
    return shown


async def look(visit: Visit) -> Response:
    """How lists are to look, from now on and in this browser."""
    fields: dict[str, list[str]] = {}
    for name, value in await read_pairs(visit.request):
        fields.setdefault(name, []).append(value)
    back = _without_columns((fields.get("back") or ["/history"])[0])
    answer = visit.to(back if back.startswith(("/history", "/webhooks/")) else "/history")
    looks.remember(answer, looks.made(fields))
    return answer


def _without_columns(back: str) -> str:
    """What was just chosen is not to be hidden by what the address says."""
    path, _, query = back.partition("?")
    kept = [(name, value) for name, value in parse_qsl(query) if name != "columns"]
    return path + ("?" + urlencode(kept) if kept else "")


async def export(visit: Visit) -> Response:
    """The filtered list as a file: the newest calls, no more than that many, written while they are read."""
    form = visit.query.get("format", "csv")
    if form not in exported.FORMATS:
        raise Refused("invalid_request", "Choose csv or jsonl.")
    chosen = chosen_in(visit.query)
    chosen["webhook"] = await picking.meant(visit.gateway, visit.actor, chosen["webhook"])
    lines = exported.lines(visit, wanted(visit, chosen), form)
    first = await anext(lines)  # what is wrong with the filter is said now, and not in a file
    return exported.answer(form, first, lines)


async def listing(visit: Visit) -> Response:
    chosen = chosen_in(visit.query)
    chosen["webhook"] = await picking.meant(visit.gateway, visit.actor, chosen["webhook"])
    asked = wanted(visit, chosen)
    is_slow = looks_into_calls(asked)
    after = visit.query.get("after")
    looking = history.listing(visit.gateway, visit.actor, asked, 50, after)
    page = await (while_connected(visit.request, looking) if is_slow else looking)
    trail = [one for one in visit.query.get("trail", "").split(".") if one][-LONGEST_TRAIL:]
    known = await names(visit, {item.webhook_id for item in page.items})
    shown = looks.of(visit.request)
    if columns := visit.query.get("columns"):
        shown = replace(shown, columns=tuple(name for name in looks.COLUMNS if name in columns.split(".")))
    query = query_of(chosen, columns)
    return visit.page(
        "history/list.html",
        rows=rows_of(visit, page.items),
        columns=looks.COLUMNS,
        looks=shown,
        after=page.next_cursor,
        at=visit.query.get("after", ""),
        trail=trail,
        searching=is_slow,
        searched=await _searched(visit, asked, page.next_cursor) if is_slow and page.next_cursor else None,
        more_filters=[name for name in MORE_FILTERS if chosen[name]],
        behind=await findable.behind(visit.gateway, visit.actor),
        chosen=chosen,
        kept=query,
        filtered=any(chosen.values()),
        saved=await saved_views.listing(visit.gateway, visit.actor),
        names=known,
        picked=await picker.picked(visit, chosen["webhook"], deleted=True),
        statuses=[("", "Every status"), *((key, words.STATUS_WORDS[key][0]) for key in STATUSES)],
        codes=[
            ("", "Every reason"),
            *((key, title) for key, title in words.CODE_WORDS.items() if key not in words.STATUS_WORDS),
        ],
        answers=list(ANSWERS.items()),
        spans=list(SPANS.items()),
        reason=sentences.reason,
    )


class Searched(Struct, frozen=True):
    """How far a search has come that goes through the calls themselves."""

    back_to: Time
    percent: int


async def _searched(visit: Visit, asked: HistoryFilter, cursor: str) -> Searched:
    oldest = await history.oldest(visit.gateway, visit.actor)
    end = max(asked.since or 0.0, float(oldest or 0.0))
    begin = min(asked.until or visit.gateway.clock(), visit.gateway.clock())
    here = time_of(cursor)
    part = (begin - here) / (begin - end) if begin > end else 1.0
    return Searched(Time(here), max(0, min(99, int(100 * part))))


async def count(visit: Visit) -> Response:
    """How many calls these filters find: a part of the list, asked for once the list is there."""
    asked = wanted(visit, chosen_in(visit.query))
    counting = history.count(visit.gateway, visit.actor, asked)
    found = await (while_connected(visit.request, counting) if looks_into_calls(asked) else counting)
    return visit.page("history/count.html", found=found)


async def save_view(visit: Visit) -> Response:
    form = await visit.form()
    fields = dict(parse_qsl(form.get("query", "")[: saved_views.LONGEST_QUERY]))
    query = query_of(chosen_in(fields), fields.get("columns") or ".".join(looks.of(visit.request).columns))
    await saved_views.save(visit.gateway, visit.actor, form.get("name", ""), query)
    return visit.to(f"/history?{query}", "view-saved")


async def rename_view(visit: Visit) -> Response:
    await saved_views.rename(
        visit.gateway, visit.actor, visit.at("view"), (await visit.form()).get("name", "")
    )
    return visit.to("/history", "view-renamed")


async def delete_view(visit: Visit) -> Response:
    await saved_views.delete(visit.gateway, visit.actor, visit.at("view"))
    return visit.to("/history", "view-deleted")


def query_of(chosen: Mapping[str, str], columns: str | None) -> str:
    """Filters and columns as the list's address has them."""
    given = {name: value for name, value in chosen.items() if value}
    return urlencode(given | ({"columns": columns} if columns else {}))


def chosen_in(fields: Mapping[str, str]) -> dict[str, str]:
    """What was chosen in the filter's form, in the address of the list or as it was sent."""
    return {name: fields.get(name, "").strip() for name in FILTERS}


def wanted(visit: Visit, chosen: dict[str, str]) -> HistoryFilter:
    given = {name: value for name, value in chosen.items() if name not in ("webhook", "span")}
    if span := chosen["span"]:
        if span not in SPANS:
            raise Refused(
                "invalid_request",
                errors=[FieldError("span", f"choose one of: {', '.join(filter(None, SPANS))}")],
            )
        given["since"] = str(visit.gateway.clock() - int(span))
    marked = bool(given.pop("marked"))
    return filter_of(webhook_id=chosen["webhook"], bookmarked=marked, **given)


async def names(visit: Visit, shown: Collection[str]) -> dict[str, str]:
    """What the webhooks on the page are called. Deleted ones too, for their calls stay."""
    return await picking.names(visit.gateway, visit.actor, list(shown), deleted=True)


async def detail(visit: Visit) -> Response:
    return visit.page("history/detail.html", **await story.context(visit, visit.at("invocation")))


async def part(visit: Visit) -> Response:
    """The same story, inside the inspector."""
    return visit.page("call/inspected.html", **await story.context(visit, visit.at("invocation")))


async def begin_workflow(visit: Visit) -> Response:
    """A file to go on from, made from this call."""
    name, source = await samples.workflow_of_call(visit.gateway, visit.actor, visit.at("invocation"))
    headers = {"content-disposition": f'attachment; filename="{name}"', "cache-control": "no-store"}
    return Response(source, media_type="text/x-python; charset=utf-8", headers=headers)


def staying(action: View) -> View:
    """A view that does something with a call. When it cannot, it is the call's page that says so, beside the
    button."""

    @wraps(action)
    async def stays(visit: Visit) -> Response:
        try:
            return await action(visit)
        except (Refused, StoreUnavailable) as trouble:
            refused = STORE_AWAY if isinstance(trouble, StoreUnavailable) else trouble
            context = await story.context(visit, visit.at("invocation"))
            return visit.page(
                "history/detail.html",
                refused.problem.status,
                **context | {"action_problem": problem_of(refused)},
            )

    return stays


def values_in(form: Form) -> Values:
    """Which values whoever pressed the button wants in the replay."""
    return "current" if form.text("values") == "current" else "recorded"


@staying
async def replay(visit: Visit) -> Response:
    values = values_in(await visit.form())
    done = await history.replay(visit.gateway, visit.actor, visit.at("invocation"), values)
    is_held = done.delivery.state == "held"
    return visit.to(f"/history/{visit.at('invocation')}", "replay-held" if is_held else "replayed")


@staying
async def replay_to_listener(visit: Visit) -> Response:
    form = await visit.form()
    invocation_id = visit.at("invocation")
    await listeners.replay(visit.gateway, visit.actor, form.text("listener"), invocation_id)
    return visit.to(f"/history/{invocation_id}", "replayed-to-listener")


@staying
async def fix(visit: Visit) -> Response:
    """One click in a rejected call's story changes the webhook so that the next one like it comes in."""
    form = await visit.form()
    invocation_id = visit.at("invocation")
    if form.text("kind") == "signature":
        await remedies.apply(
            visit.gateway, visit.actor, invocation_id, whole_number(form.text("number")) or 0
        )
    else:
        item = await history.show(visit.gateway, visit.actor, invocation_id)
        webhook = await webhooks.show(visit.gateway, visit.actor, item.webhook_id)
        await webhooks.change(
            visit.gateway, visit.actor, webhook.id, fixes.patch_of(form.text("kind"), item, webhook)
        )
    return visit.to(f"/history/{invocation_id}", "fixed")


@staying
async def admit(visit: Visit) -> Response:
    """Check a rejected call with the current settings, and start it if it passes now."""
    found = await readmission.admit(visit.gateway, visit.actor, [visit.at("invocation")])
    one = found.items[0]
    if not one.admitted:
        raise Refused("conflict", f"It was not admitted: {one.reason}.")
    item = await history.show(visit.gateway, visit.actor, visit.at("invocation"))
    return visit.to(f"/history/{item.id}", "admitted-held" if item.status == "held" else "admitted")


async def map_value(visit: Visit) -> Response:
    """A value was clicked in a tree: one of the four fields carries it from now on."""
    form = await visit.form()
    field = form.text("field")
    if field not in FIELD_NAMES:
        raise Refused("invalid_request", "Choose one of the four fields.")
    item = await history.show(visit.gateway, visit.actor, form.text("invocation"))
    await webhooks.change(
        visit.gateway, visit.actor, item.webhook_id, {"fieldMapping": {field: form.text("path")}}
    )
    back = form.text("back")
    return visit.to(
        back if back.startswith(("/webhooks/", "/history/", "/live")) else f"/history/{item.id}", "mapped"
    )
