"""The Live Request Inspector: calls as they come, on the real URL, rejected ones too, for as long as the page
is open."""

import re
from collections.abc import AsyncIterator

from starlette.responses import Response

from postern.core.access.accounts import Actor
from postern.core.history.invocation import HistoryFilter
from postern.core.problems import Refused
from postern.surfaces.console import pages
from postern.surfaces.console.views.history import story
from postern.surfaces.console.visit import Visit, whole_number
from postern.surfaces.session import actor_of
from postern.surfaces.streaming import Feed
from postern.usecases.history import history
from postern.usecases.history.live import Stream, follow, is_there
from postern.usecases.history.views import InvocationSummary

MOST = 25
_ID = re.compile(r"inv_[0-9a-f]{32}")


async def everything(visit: Visit) -> Response:
    return visit.page("live/page.html", feed_id="")


async def stream(visit: Visit) -> Response:
    """Server-sent events. Each carries a row as markup, ready to be put in place."""
    webhook_id = visit.query.get("webhook") or None
    seen = visit.request.headers.get("last-event-id", "")
    after = seen if _ID.fullmatch(seen) else None

    async def still() -> Actor:
        # A page that says it listens to a webhook that is gone would wait for ever.
        if webhook_id is not None and not is_there(visit.gateway, webhook_id):
            raise Refused("not_found", "there is no webhook with this id")
        return await actor_of(visit.gateway, visit.request)

    await still()
    # Joined before the newest are read: what comes in between is then sent twice, and never missed.
    following = await follow(visit.gateway, visit.actor, still, webhook_id, after)
    newest = whole_number(visit.query.get("newest", ""))
    count = 0 if after else MOST if newest is None else min(newest, MOST)
    return Feed(following, _events(visit, following, webhook_id, count))


async def _events(visit: Visit, following: Stream, webhook_id: str | None, count: int) -> AsyncIterator[str]:
    newest = ""
    # On the inspector of all webhooks each row says whose it is.
    names = _Names(visit) if webhook_id is None else None
    if count:
        page = await history.listing(visit.gateway, visit.actor, HistoryFilter(webhook_id), count)
        for item in reversed(page.items):
            newest = item.id
            yield _event(item, await _row(item, names, is_new=False), newest)
    yield "retry: 1000\nevent: listening\ndata: now\n\n"
    async for event in following.events():
        if event is None:
            yield ": still here\n\n"
            continue
        item = event.summary
        place = item.id if item.id > newest else ""
        newest = max(newest, item.id)
        yield _event(item, await _row(item, names, is_new=event.name == "invocation"), place)


class _Names:
    """Webhooks' names, each looked up once for a stream; one that is changed meanwhile is read with the
    page's next visit."""

    def __init__(self, visit: Visit) -> None:
        self._visit = visit
        self._known: dict[str, str] = {}

    async def of(self, webhook_id: str) -> str:
        if webhook_id not in self._known:
            webhook = await story.webhook_or_none(self._visit, webhook_id)
            self._known[webhook_id] = webhook.name if webhook else "Deleted webhook"
        return self._known[webhook_id]


async def _row(item: InvocationSummary, names: _Names | None, is_new: bool) -> str:
    whose = await names.of(item.webhook_id) if names else ""
    return pages.ENVIRONMENT.get_template("live/row.html").render(
        item=item, reason=story.reason(item), is_new=is_new, whose=whose
    )


def _event(item: InvocationSummary, markup: str, place: str) -> str:
    # An older call that moves must not set the place to resume from back.
    lines = "\n".join(f"data: {line}" for line in markup.splitlines() if line.strip())
    return (f"id: {place}\n" if place else "") + f"event: call\n{lines}\n\n"
