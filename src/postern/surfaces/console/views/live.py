"""The Live Request Inspector: calls as they come, on the real URL, refused ones too, for as long as the page is open."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from starlette.responses import Response, StreamingResponse

from postern.core.invocation import HistoryFilter
from postern.surfaces.console import pages
from postern.surfaces.console.views import story
from postern.surfaces.console.visit import Visit
from postern.usecases import history

MOST = 25
LOOK_EVERY = 0.5
HEARTBEAT_AFTER = 20


async def everything(visit: Visit) -> Response:
    return visit.page("live/page.html", feed_id="")


async def stream(visit: Visit) -> Response:
    """Server-sent events. Each carries a row as markup, ready to be put in place."""
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    newest = visit.query.get("newest", "")
    events = _events(visit, visit.query.get("webhook") or None, min(int(newest), MOST) if newest.isdigit() else MOST)
    return StreamingResponse(events, media_type="text/event-stream", headers=headers)


async def _events(visit: Visit, webhook_id: str | None, newest: int) -> AsyncIterator[str]:
    seen: dict[str, Any] = {}
    quiet = 0
    first = True
    while not await visit.request.is_disconnected():
        page = await history.listing(visit.gateway, visit.actor, HistoryFilter(webhook_id), MOST)
        fresh = [item for item in reversed(page.items[:newest] if first else page.items) if seen.get(item["id"]) != _state(item)]
        for item in fresh:
            yield _event(item, _row(item, webhook_id is None, is_new=not first))
        seen = {item["id"]: _state(item) for item in page.items}
        if first:
            yield "event: listening\ndata: now\n\n"
        first = False
        quiet = 0 if fresh else quiet + 1
        if quiet >= HEARTBEAT_AFTER:
            quiet = 0
            yield ": still here\n\n"
        await asyncio.sleep(LOOK_EVERY)


def _state(item: dict[str, Any]) -> tuple[Any, ...]:
    return item["status"], item.get("runs"), item["httpStatus"]


def _row(item: dict[str, Any], names_webhook: bool, is_new: bool) -> str:
    template = pages.ENVIRONMENT.get_template("live/row.html")
    return template.render(item=item, reason=story.reason(item), names_webhook=names_webhook, is_new=is_new)


def _event(item: dict[str, Any], markup: str) -> str:
    lines = "\n".join(f"data: {line}" for line in markup.splitlines() if line.strip())
    return f"id: {item['id']}\nevent: call\n{lines}\n\n"
