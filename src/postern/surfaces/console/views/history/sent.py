"""The request as it was sent: the body as a tree, to the byte, indented or as a table, the headers and the query. One of them at a
time, each at an address of its own: a page has what is looked at, and not ten times a megabyte."""

import asyncio
from base64 import b64decode
from functools import partial

import msgspec
from starlette.responses import Response

from postern.core.deliveries.delivery import FIELD_NAMES
from postern.core.signatures.redact import MASK
from postern.surfaces.console import bodies, tree
from postern.surfaces.console.bodies import BodyKind
from postern.surfaces.console.labels import LABELS
from postern.surfaces.console.visit import PageValues, Visit, or_none, whole_number
from postern.usecases.answers import as_plain
from postern.usecases.history import history
from postern.usecases.history.views.calls import Invocation
from postern.usecases.webhooks import picking, webhooks
from postern.usecases.webhooks.views import Webhook

LARGEST_AT_ONCE = 64 * 1024
"""Bytes. A larger body is searched in a thread, so that calls do not wait."""


class SentBody(msgspec.Struct):
    kind: BodyKind
    views: list[tuple[str, str]]
    """Key and title of each way to look at it."""
    chosen: str
    size: int
    """Bytes of the body that are kept."""
    gone: bool
    is_text: bool
    query: str
    root: tree.Node | None = None
    at: str = ""
    find: str = ""
    found: tree.TreeSearch | None = None
    raw: bodies.ShownBody | None = None
    text: str = ""
    """Indented, or in hexadecimal."""
    text_cut: bool = False
    pairs: list[tuple[str, str]] | None = None
    pair_count: int = 0

    @property
    def short_text(self) -> bool:
        """Whether the page itself holds all of the text to be copied."""
        return self.is_text and self.size <= 4096


async def part(visit: Visit) -> Response:
    """The same inside the call's page and inside the inspector."""
    item = await visit.ask(history.show, visit.at("invocation"))
    webhook = await or_none(visit.ask(webhooks.show, item.webhook_id))
    return visit.page("call/sent.html", within_story=False, **await context(visit, item, webhook))


async def context(visit: Visit, item: Invocation, webhook: Webhook | None) -> PageValues:
    return {
        "item": item,
        "webhook": webhook,
        "webhook_name": await name_of(visit, item.webhook_id),
        "sent": await _sent(visit, item),
        "fields": FIELD_LABELS,
        "mask": MASK,
        "mapped": as_plain(webhook.field_mapping) if webhook else {},
    }


async def name_of(visit: Visit, webhook_id: str) -> str:
    """The webhook's name, also if it was deleted or cannot be read: its calls stay."""
    names = await visit.ask(picking.names, [webhook_id], deleted=True)
    return names.get(webhook_id, "Deleted webhook")


FIELD_LABELS = {name: LABELS[f"fieldMapping.{name}"] for name in FIELD_NAMES}


async def _sent(visit: Visit, item: Invocation) -> SentBody:
    request = await visit.ask(history.request, item.id)
    body = b64decode(request.body_base64 or "")
    kind = bodies.kind_of(request.headers, body)
    json_text = _json_text(kind, body, item)
    views = _views(kind, body, json_text, item)
    view = visit.query.get("show", "")
    chosen = view if view in dict(views) else views[0][0]
    sent = SentBody(
        kind, views, chosen, len(body), request.body_base64 is None, _is_utf8(body), request.query
    )
    match chosen:
        case "tree" if json_text is not None:
            await _fill_tree(visit, sent, json_text)
        case "raw":
            sent.raw = bodies.marked(body)
        case "pretty":
            sent.text, sent.text_cut = bodies.cut_text(bodies.pretty(body))
        case "hex":
            sent.text, sent.text_cut = bodies.hexadecimal(body), len(body) > bodies.HEX_BYTES
        case "form":
            sent.pairs, sent.pair_count = bodies.pairs(body)
        case "query":
            sent.pairs, sent.pair_count = bodies.pairs(request.query.encode("latin-1", "replace"))
        case "headers":
            pass  # the page has them
        case _:
            raise NotImplementedError(f"{chosen} is offered and not shown")
    return sent


def _json_text(kind: BodyKind, body: bytes, item: Invocation) -> bytes | None:
    """The object that field paths go into: a list stands under `items` there, and a form has become one."""
    if item.payload is not None:
        return bytes(item.payload)
    return body.removeprefix(b"\xef\xbb\xbf") if kind == "json" else None


def _views(kind: BodyKind, body: bytes, json_text: bytes | None, item: Invocation) -> list[tuple[str, str]]:
    views = []
    if json_text is not None and (item.payload is not None or _is_json(json_text)):
        views.append(("tree", "Body" if kind == "json" else "Values"))
    if kind == "form":
        views.append(("form", "Form"))
    views.append(("hex", "Bytes") if kind == "binary" else ("raw", "Raw"))
    if kind == "json" and (len(body) > LARGEST_AT_ONCE or bodies.pretty(body)):
        views.append(("pretty", "Pretty"))
    views.append(("headers", "Headers"))
    if item.query:
        views.append(("query", "Query"))
    return views


async def _fill_tree(visit: Visit, sent: SentBody, text: bytes) -> None:
    sent.find = visit.query.get("find", "").strip()[: tree.LONGEST_SEARCH]
    sent.at = visit.query.get("at", "")
    if sent.find:
        looking = partial(tree.search, text, sent.find)
        sent.found = await asyncio.to_thread(looking) if len(text) > LARGEST_AT_ONCE else looking()
        sent.root = sent.found.root
        return
    sent.root = tree.tree(text, sent.at, whole_number(visit.query.get("start", "")) or 0)
    if sent.root is None and sent.at:
        sent.at, sent.root = "", tree.tree(text)


def _is_json(text: bytes) -> bool:
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return False
    return text.strip()[:1] in (b"{", b"[")


def json_object(text: str | None) -> bytes | None:
    """The body of a call that was rejected, where it is an object all the same."""
    body = (text or "").encode()
    return body if body.lstrip()[:1] == b"{" and _is_json(body) else None


def _is_utf8(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True
