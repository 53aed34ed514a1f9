"""The Live Request Inspector: calls as they come, on the real URL, rejected ones too, for as long as the page
is open. Where more come than anybody reads, they are counted."""

import asyncio
import re
from collections import Counter, OrderedDict, defaultdict
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from msgspec.structs import replace
from starlette.responses import JSONResponse, Response

from postern.core.access.accounts import Actor
from postern.core.history.crowd import READABLE, Crowd
from postern.core.history.invocation import HistoryFilter, statuses_of
from postern.core.history.volume import OUTCOMES, outcome_of
from postern.identity import first_id_at, time_of
from postern.surfaces.console import pages
from postern.surfaces.console.views.history import asked, sent, sentences
from postern.surfaces.console.views.history.listing import row_of
from postern.surfaces.console.visit import Visit, whole_number
from postern.surfaces.session import actor_of
from postern.surfaces.streaming import Feed
from postern.usecases.answers import as_plain
from postern.usecases.history import history
from postern.usecases.history.filters import filter_of
from postern.usecases.history.live import HEARTBEAT, OVERLAP, Batch, Stream, watch
from postern.usecases.stored_webhook import served
from postern.usecases.summary import InvocationSummary
from postern.usecases.webhooks import picking

FIRST_ROWS = 25
"""Rows that a page begins with."""
MOST_ROWS = 100
"""That it holds; static/js/live.js keeps no more either."""
TICK = 1.0
SEEN = 2_000
MOST_COUNTED = 12
"""Webhooks that are named while calls are counted; the others are one line."""
_ID = re.compile(r"inv_[0-9a-f]{32}")


async def stream(visit: Visit) -> Response:
    """Server-sent events. Each carries a row as markup, ready to be put in place."""
    criteria = await _wanted(visit)
    seen = visit.request.headers.get("last-event-id", "")
    after = seen if _ID.fullmatch(seen) else None

    async def still() -> Actor:
        # A page that says it listens to a webhook that is gone would wait for ever.
        if criteria.webhook_id is not None:
            served(visit.gateway, criteria.webhook_id)
        return await actor_of(visit.gateway, visit.request)

    await still()
    # Joined before the newest are read: what comes in between is then sent twice, and never missed.
    following = await visit.ask(watch, still, criteria.webhook_id)
    newest = whole_number(visit.query.get("newest", ""))
    count = FIRST_ROWS if newest is None else min(newest, FIRST_ROWS)
    return Feed(following, LivePage(visit, criteria, MOST_ROWS if after else count).lines(following, after))


async def count(visit: Visit) -> Response:
    """Counts the calls since a time, for a tab in the background."""
    criteria = await _wanted(visit, visit.query.get("since") or str(visit.gateway.clock()))
    counted = await visit.ask(history.count, criteria)
    return JSONResponse(as_plain(counted), headers={"cache-control": "no-store"})


async def _wanted(visit: Visit, since: str = "") -> HistoryFilter:
    chosen = {name: visit.query.get(name, "").strip() for name in asked.LIVE_PARTS}
    webhook = await visit.ask(picking.meant, chosen["webhook"])
    return filter_of(webhook_id=webhook, status=chosen["status"], address=chosen["address"], since=since)


@dataclass
class LivePage:
    """The events of one open page."""

    visit: Visit
    wanted: HistoryFilter
    rows: int
    crowd: Crowd = field(default_factory=Crowd)
    _newest: str = ""
    _seen: OrderedDict[str, None] = field(default_factory=OrderedDict)
    """Calls that were listed or counted: they move again, and are not new."""
    _there: OrderedDict[str, None] = field(default_factory=OrderedDict)
    """Calls that the page may have a row of."""
    _oldest: str = ""
    """An older call is not new, whatever happens to it."""
    _counted_at: float = 0.0
    _wrote_at: float = 0.0

    _names: dict[str, str] = field(default_factory=dict)
    """Names of webhooks, each looked up once for a stream."""

    async def _named(self, webhook_id: str) -> dict[str, str]:
        """On the list of all webhooks each row says whose it is."""
        if self.wanted.webhook_id is not None:
            return {}
        if webhook_id not in self._names:
            self._names[webhook_id] = await sent.name_of(self.visit, webhook_id)
        return self._names

    async def lines(self, following: Stream, after: str | None) -> AsyncIterator[str]:
        now = asyncio.get_running_loop().time
        self._oldest = first_id_at("inv", self.visit.gateway.clock() - OVERLAP)
        for line in await (self._listed() if after is None else self._missed(after)):
            yield line
        yield f"retry: 1000\nevent: listening\ndata: {self.visit.gateway.clock()}\n\n"
        async for batch in following.batches(TICK):
            lines = await self._lines_of(batch, now())
            if not lines and now() - self._wrote_at >= HEARTBEAT:
                lines = [": still here\n\n"]
            for line in lines:
                self._wrote_at = now()
                yield line

    async def _listed(self, since: float | None = None) -> list[str]:
        """The newest calls as rows, the oldest first."""
        if not self.rows:
            return []
        page = await self.visit.ask(history.listing, replace(self.wanted, since=since), self.rows)
        return [await self._row("call", item) for item in reversed(page.items)]

    async def _missed(self, after: str) -> list[str]:
        """Lists the calls that came while the connection was broken, as far as the page has room."""
        since = max(0.0, time_of(after) - OVERLAP)
        lines = await self._listed(since)
        counted = await self.visit.ask(history.count, replace(self.wanted, since=since))
        left_out = counted.calls - len(lines)
        return [*lines, _skipped(left_out)] if left_out > 0 else lines

    async def _lines_of(self, batch: Batch, now: float) -> list[str]:
        lines = [_skipped(batch.skipped)] if batch.skipped else []
        fresh = [event.summary for event in batch.events if self._is_fresh(event.summary)]
        for item in fresh:
            self._oldest = max(self._oldest, _keep(self._seen, item.id, SEEN))
        is_counted = self.crowd.arrive([(item.webhook_id, outcome_of(item.status)) for item in fresh], now)
        listed = set() if is_counted else {item.id for item in fresh}
        for event in batch.events:
            if event.invocation_id in listed:
                lines.append(await self._row("call", event.summary, is_new=True))
            elif event.invocation_id in self._there:
                lines.append(await self._row("moved", event.summary))
        if not is_counted:
            return lines
        if self.crowd.is_over(now):
            lines.append(await self._counted(now, is_over=True))
            self.crowd.end()
            lines += await self._listed()
        elif now - self._counted_at >= TICK:
            self._counted_at = now
            lines.append(await self._counted(now))
        return lines

    def _is_fresh(self, item: InvocationSummary) -> bool:
        status, address = self.wanted.status, self.wanted.address
        is_meant = (status is None or item.status in statuses_of(status)) and address in (None, item.address)
        if item.id in self._seen or not is_meant:
            return False
        # A filter for failed calls waits for old ones, too.
        return self.wanted.status is not None or item.id > self._oldest

    async def _row(self, event: str, item: InvocationSummary, is_new: bool = False) -> str:
        # The page takes it off its count. One that is recorded and was not heard of yet is in no count.
        is_counted = not is_new and item.id in self._seen and item.id not in self._there
        self._oldest = max(self._oldest, _keep(self._seen, item.id, SEEN))
        _keep(self._there, item.id, 2 * MOST_ROWS)
        # An older call that moves must not set the place to resume from back.
        place = f"id: {item.id}\n" if item.id > self._newest else ""
        self._newest = max(self._newest, item.id)
        return place + _event(
            event,
            "live/row.html",
            one=await row_of(self.visit, item),
            reason=sentences.reason,
            is_new=is_new,
            is_counted=is_counted,
            names=await self._named(item.webhook_id),
            may_mark="beside" not in self.visit.query and self.visit.actor.may("write"),
        )

    async def _counted(self, now: float, is_over: bool = False) -> str:
        by_webhook: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for (webhook_id, outcome), calls in self.crowd.counts.items():
            by_webhook[webhook_id][outcome] = calls
        ordered = sorted(by_webhook.items(), key=lambda pair: -pair[1].total())
        rows = [
            ((await self._named(owner)).get(owner, ""), owner, counts)
            for owner, counts in ordered[:MOST_COUNTED]
        ]
        if rest := ordered[MOST_COUNTED:]:
            rows.append((f"{len(rest)} other webhooks", "", sum((tally for _, tally in rest), Counter())))
        return _event(
            "counted",
            "live/counted.html",
            rows=rows,
            outcomes=[name for name in OUTCOMES if any(counts[name] for _, _, counts in rows)],
            total=self.crowd.counts.total(),
            rate=self.crowd.rate(now),
            is_over=is_over,
            seconds=round(now - (self.crowd.began or now)),
            readable=READABLE,
        )


def _keep(kept: OrderedDict[str, None], key: str, most: int) -> str:
    """The one that is kept no longer, if any is."""
    kept[key] = None
    return kept.popitem(last=False)[0] if len(kept) > most else ""


def _skipped(changes: int) -> str:
    return f"event: skipped\ndata: {changes}\n\n"


def _event(name: str, template: str, **context: object) -> str:
    markup = pages.ENVIRONMENT.get_template(template).render(context)
    lines = "\n".join(f"data: {line}" for line in markup.splitlines() if line.strip())
    return f"event: {name}\n{lines}\n\n"
