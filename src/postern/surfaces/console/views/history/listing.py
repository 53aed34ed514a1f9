"""The page Calls: the list with its one field, its tabs and its strip of time; the filter is in the address."""

from collections import Counter
from collections.abc import AsyncIterator, Collection
from typing import Any
from urllib.parse import parse_qsl

from msgspec import Struct
from msgspec.structs import replace
from starlette.responses import Response

from postern.core.history.invocation import HistoryFilter
from postern.core.history.part import looks_into_calls
from postern.core.problems import Refused, invalid
from postern.identity import time_of
from postern.surfaces.console.views.history import asked, files, sentences
from postern.surfaces.console.views.history.volume import strip_of
from postern.surfaces.console.visit import Visit, deed, problem_of
from postern.surfaces.streaming import while_connected
from postern.usecases.answers import Listing, Time
from postern.usecases.calls import readmission
from postern.usecases.deliveries import replays
from postern.usecases.history import findable, history, saved_views, volumes
from postern.usecases.history.filters import filter_of
from postern.usecases.history.views.calls import Failures
from postern.usecases.summary import InvocationSummary
from postern.usecases.webhooks import picking

PAGE = 50
MOST_MARKED = 100
LONGEST_TRAIL = 20
"""Pages that one can go back."""


class CallRow(Struct, frozen=True):
    """A call, and its duplicates on the same page."""

    item: InvocationSummary
    duplicates: list["CallRow"]


def rows_of(items: list[InvocationSummary], folded: bool = True) -> list[CallRow]:
    made = {item.id: CallRow(item, []) for item in items}
    if not folded:
        return list(made.values())
    first_of: dict[str, CallRow] = {}
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


async def row_of(visit: Visit, item: InvocationSummary) -> CallRow:
    """The row of a call that came by another way than a list, with what only lists say of it."""
    page = await visit.ask(history.listing, HistoryFilter(value=item.id), 1)
    return CallRow(page.items[0] if page.items else item, [])


async def export(visit: Visit) -> Response:
    """The filtered list as a file: the newest calls, no more than that many, written while they are read."""
    form = visit.query.get("format", "csv")
    if form not in files.FORMATS:
        raise Refused("invalid_request", "Choose csv or jsonl.")
    chosen = asked.chosen_in(visit.query)
    chosen["webhook"] = await visit.ask(picking.meant, chosen["webhook"])
    lines = files.lines_of_list(visit, wanted(visit, chosen), form)
    # Mistakes in the filter are said now, and not in a file.
    first = await anext(lines)
    return files.list_as_file(form, first, lines)


async def listing(visit: Visit) -> Response:
    return await page_of_calls(visit, "calls/page.html", "/calls")


async def page_of_calls(visit: Visit, template: str, path: str, **context: Any) -> Response:
    """The list with its field, for all webhooks or, within ``path``, for one of them."""
    of = context["webhook"].id if "webhook" in context else ""
    typed, wrong = visit.query.get("q", ""), None
    try:
        chosen, wanted_calls = await _asked_for(visit, of, typed)
    except Refused as refused:
        if not (typed and visit.wants_part):
            raise
        # It stays in the field, above the list as it was.
        wrong = problem_of(refused)
        chosen, wanted_calls = await _asked_for(visit, of, "")
    own = chosen | {"webhook": "" if of else chosen["webhook"]}
    query = asked.query_of(own)
    if "q" in visit.query and not visit.wants_part:  # without scripts
        return visit.to(path + ("?" + query if query else ""))
    is_live = bool(visit.query.get("live"))
    after = visit.query.get("after")
    page, is_text = await _found(visit, wanted_calls, after)
    is_slow = looks_into_calls(wanted_calls) or is_text
    failures = Failures(items=[], or_more=False)
    if chosen["status"] == "failed" and not (after or chosen["error"] or is_live):
        failures = await visit.ask(history.failures, wanted_calls)
    shown_webhooks = {item.webhook_id for item in page.items}.union(
        *(group.webhook_ids for group in failures.items)
    )
    known = await names(visit, {chosen["webhook"], *shown_webhooks} - {""})
    if is_text:
        query = asked.query_of(own | {"value": "", "search": chosen["value"]})
    strip = await strip_of(visit, wanted_calls)
    answer = visit.page(
        template,
        path=path,
        rows=rows_of(page.items, folded=not is_live),
        after=page.next_cursor,
        at=after or "",
        trail=[step for step in visit.query.get("trail", "").split(".") if step][-LONGEST_TRAIL:],
        searching=is_slow,
        searched=await _searched(visit, wanted_calls, page.next_cursor)
        if is_slow and page.next_cursor
        else None,
        instead_of_value=chosen["value"] if is_text else "",
        behind=await visit.ask(findable.behind),
        chosen=chosen,
        chips=asked.chips(own, wanted_calls, known),
        offered=asked.offered(strip.reasons),
        failures=failures,
        kept=query,
        tabs=await _tabs(visit, own),
        names={} if of else known,
        may_be_live=not any(value for name, value in chosen.items() if name not in asked.LIVE_PARTS),
        is_live=is_live,
        typed=typed if wrong else "",
        wrong=wrong,
        may_mark=visit.actor.may("write"),
        strip=strip,
        reason=sentences.reason,
        **context,
    )
    if "q" in visit.query:
        answer.headers["hx-push-url"] = path + ("?" + query if query else "")
    return answer


async def _asked_for(visit: Visit, of: str, typed: str) -> tuple[dict[str, str], HistoryFilter]:
    chosen = asked.chosen_in(visit.query, typed)
    chosen["webhook"] = of or await visit.ask(picking.meant, chosen["webhook"])
    return chosen, wanted(visit, chosen)


async def _found(
    visit: Visit, wanted_calls: HistoryFilter, after: str | None
) -> tuple[Listing[InvocationSummary], bool]:
    """A page of calls. Where no mapped value, event or ID is what was typed, the calls whose text has it."""
    looking = visit.ask(history.listing, wanted_calls, PAGE, after)
    page = await (while_connected(visit.request, looking) if looks_into_calls(wanted_calls) else looking)
    value = wanted_calls.value
    if page.items or after or not value or value.endswith("*"):
        return page, False
    in_text = replace(wanted_calls, value=None, search=value)
    looking = visit.ask(history.listing, in_text, PAGE, after)
    return await while_connected(visit.request, looking), True


class Tab(Struct, frozen=True):
    """A set of filters with a name: the built-in ones, and a user's own."""

    title: str
    query: str
    is_open: bool
    id: str = ""


async def _tabs(visit: Visit, chosen: dict[str, str]) -> list[Tab]:
    here = asked.query_of(chosen)
    tabs = []
    for title, status in (("All", ""), ("Failed", "failed"), ("Rejected", "rejected")):
        query = asked.query_of(chosen | {"status": status})
        tabs.append(Tab(title, query, query == here))
    own = await visit.ask(saved_views.listing)
    return [*tabs, *(Tab(view.name, view.query, view.query == here, view.id) for view in own)]


class Searched(Struct, frozen=True):
    """The progress of a search that goes through the calls themselves."""

    back_to: Time
    percent: int


async def _searched(visit: Visit, criteria: HistoryFilter, cursor: str) -> Searched:
    oldest = await visit.ask(history.oldest)
    end = max(criteria.since or 0.0, float(oldest or 0.0))
    begin = min(criteria.until or visit.gateway.clock(), visit.gateway.clock())
    here = time_of(cursor)
    part = (begin - here) / (begin - end) if begin > end else 1.0
    return Searched(Time(here), max(0, min(99, int(100 * part))))


async def count(visit: Visit) -> Response:
    """Counts the calls that the filter finds. The list asks for this part once it is shown."""
    wanted_calls = wanted(visit, asked.chosen_in(visit.query))
    counting = visit.ask(history.count, wanted_calls)
    counted = await (while_connected(visit.request, counting) if looks_into_calls(wanted_calls) else counting)
    month, is_rejected = 0, wanted_calls.status == "rejected"
    if counted.or_more and wanted_calls in (
        HistoryFilter(wanted_calls.webhook_id),
        HistoryFilter(wanted_calls.webhook_id, "rejected"),
    ):
        # Volume has counted what a list does not count to its end.
        total = (await visit.ask(volumes.chart, wanted_calls.webhook_id, "month")).total
        month = total.outcomes.rejected if is_rejected else total.calls
    return visit.page("calls/count.html", found=counted, month=month, is_short="short" in visit.query)


async def save_view(visit: Visit) -> Response:
    form = await visit.form()
    fields = dict(parse_qsl(form.get("query", "")[: saved_views.LONGEST_QUERY]))
    query = asked.query_of(asked.chosen_in(fields))
    await visit.ask(saved_views.save, form.get("name", ""), query)
    return visit.to(f"/calls?{query}", "view-saved")


async def rename_view(visit: Visit) -> Response:
    await visit.ask(saved_views.rename, visit.at("view"), (await visit.form()).get("name", ""))
    return visit.to("/calls", "view-renamed")


delete_view = deed(saved_views.delete, "view", "/calls", "view-deleted")


def wanted(visit: Visit, chosen: dict[str, str]) -> HistoryFilter:
    asked.checked(chosen)
    given = {name: value for name, value in chosen.items() if name not in ("webhook", "marked")}
    return filter_of(webhook_id=chosen["webhook"], bookmarked=bool(chosen["marked"]), **given)


async def names(visit: Visit, shown: Collection[str]) -> dict[str, str]:
    """The names of the webhooks on the page, also of deleted ones: their calls stay."""
    return await visit.ask(picking.names, list(shown), deleted=True)


async def do_with_marked(visit: Visit) -> Response:
    """Actions on several calls that were marked in the list."""
    pairs = await visit.pairs()
    calls = list(dict.fromkeys(value for name, value in pairs if name == "call"))
    fields = dict(pairs)
    if not 0 < len(calls) <= MOST_MARKED:
        raise invalid("call", f"mark 1 to {MOST_MARKED} calls")
    match fields.get("do"):
        case "export":
            return files.list_as_file("csv", "", _lines_of(visit, calls))
        case "replay":
            made = await visit.ask(replays.plan, filter_of(value=",".join(calls)))
            return visit.to(f"/replays/{made.id}")
        case "admit":
            result = await visit.ask(readmission.admit, calls)
            refused = Counter(
                item.reason or "it was started already" for item in result.items if not item.admitted
            )
        case _:
            raise invalid("do", "choose replay, admit or export")
    back = fields.get("back", "")
    return visit.page(
        "calls/done.html",
        done=result.admitted,
        of=len(calls),
        refused=refused.most_common(),
        back=back if back.startswith(("/calls", "/webhooks/")) else "/calls",
    )


async def _lines_of(visit: Visit, calls: list[str]) -> AsyncIterator[str]:
    for call in calls:
        async for line in files.lines_of_list(visit, filter_of(value=call), "csv"):
            yield line
