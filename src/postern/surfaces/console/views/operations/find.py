"""Find anything: webhooks, calls by a value or an id, pages, settings and what can be done, from the keyboard."""

from urllib.parse import quote

from msgspec import Struct
from starlette.responses import Response

from postern.surfaces.console import documentation, words
from postern.surfaces.console.views.history.listing import names as names_of
from postern.surfaces.console.views.operations import settings as settings_pages
from postern.surfaces.console.visit import Visit
from postern.usecases.history import findable, history, saved_views
from postern.usecases.history.filters import filter_of
from postern.usecases.operations import settings
from postern.usecases.summary import InvocationSummary
from postern.usecases.webhooks import picking

EACH = 6
SHORTEST_BEGINNING = 3
"""Characters: what begins with fewer is too much to be meant."""
PAGES = [
    ("Webhooks", "/webhooks"),
    ("New webhook", "/webhooks/new"),
    ("Calls: every call", "/calls"),
    ("Calls: rejected calls", "/calls?status=rejected"),
    ("Calls: failed calls", "/calls?status=failed"),
    ("Live Request Inspector", "/calls?live=1"),
    ("Volume", "/volume"),
    ("Replays", "/replays"),
    ("Bin: restore a deleted webhook", "/bin"),
    ("Workflows", "/workflows"),
    ("Signature tester", "/tester"),
    ("Documentation", "/documentation"),
    ("Documentation: API reference", "/docs"),
]


class FoundItem(Struct, frozen=True):
    title: str
    href: str
    kind: str
    beside: str = ""
    at: float | None = None
    """The time of a call, shown in the reader's zone."""


async def show(visit: Visit) -> Response:
    text = visit.query.get("find", "").strip()[:200]
    return visit.page("find.html", found=await _found(visit, text), wanted=text)


async def _found(visit: Visit, text: str) -> list[FoundItem]:
    pages = [FoundItem(title, path, "Page") for title, path in _pages(visit) if text.lower() in title.lower()]
    saved = [
        FoundItem(view.name, f"/calls?{view.query}", "View")
        for view in await visit.ask(saved_views.listing)
        if text.lower() in view.name.lower()
    ]
    if not text:
        return [*saved, *pages]
    calls = await visit.ask(history.listing, filter_of(value=text), EACH)
    is_whole = bool(calls.items)
    value = text
    if not is_whole and len(text) >= SHORTEST_BEGINNING:
        value = f"{text.rstrip('*')}*"
        calls = await visit.ask(history.listing, filter_of(value=value), EACH)
    named = await visit.ask(picking.choices, text)
    names = await names_of(visit, {item.webhook_id for item in calls.items})
    kind = "Call" if is_whole else f"Begins with {value.rstrip('*')}"
    found_calls = [
        FoundItem(_call(item, names), f"/calls/{item.id}", kind, at=item.received_at) for item in calls.items
    ]
    if calls.next_cursor:
        every = f"/calls?value={quote(value)}"
        found_calls.append(FoundItem(f"Every call with “{value}”", every, "Calls" if is_whole else kind))
    found_webhooks = [
        FoundItem(webhook.name, f"/webhooks/{webhook.id}", "Webhook", webhook.id) for webhook in named[:EACH]
    ]
    if len(named) > EACH:
        every = f"/webhooks?search={quote(text)}"
        found_webhooks.append(FoundItem(f"Every webhook with “{text}”", every, "Webhooks"))
    in_text = FoundItem(
        f"Search the text of every call for “{text}”", f"/calls?search={quote(text)}", "Search"
    )
    no_value = not is_whole and bool(found_calls or not (saved or named or pages))
    if no_value:
        # First, so that the Enter key opens no call whose value only begins like the one typed. The newest calls are not
        # under their values yet, and large bodies never are.
        behind = await visit.ask(findable.behind)
        aside = f"{words.since_then(behind or visit.gateway.clock() - findable.USUAL)} aside"
        title = f"No call has the value “{text}”: search the text of every call"
        found_calls.insert(0, FoundItem(title, in_text.href, in_text.kind, aside))
    # A pasted whole id or value means its call, a typed word its webhook.
    results = [*found_calls, *saved, *found_webhooks] if is_whole else [*saved, *found_webhooks, *found_calls]
    results += pages[:EACH]
    if visit.actor.may("admin"):
        listed = await visit.ask(settings.in_force)
        results += [
            FoundItem(setting.variable, "/settings/environment", "Setting", setting.help)
            for setting in listed
            if text.lower() in f"{setting.variable} {setting.help}".lower()
        ][:EACH]
    results += [
        FoundItem(title, address, "Documentation", page_title)
        for title, address, page_title in documentation.find(text, EACH)
    ]
    return results if no_value else [*results, in_text]


def _call(item: InvocationSummary, names: dict[str, str]) -> str:
    said = [item.event or "", *item.other_values]
    call = f"{words.STATUS_WORDS[item.status][0]} call to {names.get(item.webhook_id, 'a deleted webhook')}"
    return " · ".join([call, *filter(None, said)])  # what is cut is at the end


def _pages(visit: Visit) -> list[tuple[str, str]]:
    tabs = settings_pages.tabs_of(visit.actor)
    pages = [page for page in PAGES if page[1] != "/webhooks/new" or visit.actor.may("write")]
    return [*pages, *((f"Settings: {title}", f"/settings/{name}".rstrip("/")) for name, title in tabs)]
