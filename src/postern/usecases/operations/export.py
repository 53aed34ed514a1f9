"""Exports everything as lines of JSON, to keep, or to use with other programs.

Each line is an object with its ``kind`` and what the API answers for such an object. The last line has the numbers of
each kind: a file without it was cut off.
"""

import base64
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

from postern import __version__
from postern.core.access.accounts import Actor
from postern.core.history.invocation import Story
from postern.core.history.marks import Marks
from postern.core.listeners import ListenerCall
from postern.usecases.access import accounts, audit
from postern.usecases.alarms import channels
from postern.usecases.answers import UNSET, Listing, as_json, as_plain, iso
from postern.usecases.deliveries import replays
from postern.usecases.history import samples
from postern.usecases.history.views.calls import invocation_of
from postern.usecases.runtime.gateway import Gateway, require
from postern.usecases.webhooks import bin, listing

FORMAT = 1
PAGE = 200
CALLS_AT_ONCE = 500
MOST_AT_ONCE = 8 * 1024 * 1024
"""Bytes of bodies in memory."""

T = TypeVar("T")


async def everything(gateway: Gateway, actor: Actor, write: Callable[[bytes], object]) -> None:
    """Every webhook, those in the bin and what was recorded for them too, user, saved view, channel, API key, change, replay of many
    and call, a line of JSON each. No secret, key or password is in it."""
    require(actor, "admin")
    counts: Counter[str] = Counter()

    def line(kind: str, fields: Any) -> None:
        write(as_json({"kind": kind, **as_plain(fields)}) + b"\n")

    line("export", {"format": FORMAT, "version": __version__, "madeAt": iso(gateway.clock())})
    async for kind, record in _others(gateway, actor):
        line(kind, record)
        counts[kind] += 1
    async for calls in _calls(gateway):
        write(b"".join(calls))
        counts["call"] += len(calls)
    line("end", {"counts": dict(counts)})


async def _others(gateway: Gateway, actor: Actor) -> AsyncIterator[tuple[str, Any]]:
    cursor = None
    while True:
        page = await listing.listing(gateway, actor, PAGE, cursor)
        for webhook in page.items:
            yield "webhook", webhook
            recorded = await samples.sample(gateway, actor, webhook.id)
            if recorded.recorded_at is not None:
                yield "sample", recorded
        for unreadable in page.unreadable or []:
            yield "unreadableWebhook", unreadable
        cursor = page.next_cursor
        if cursor is None:
            break
    async for deleted in _pages(lambda after: bin.listing(gateway, actor, PAGE, after)):
        yield "deletedWebhook", deleted
    for user in await accounts.users(gateway, actor):
        yield "user", user
    for view in await gateway.store.saved_views.all():
        kept = {"id": view.id, "by": view.owner, "name": view.name, "query": view.query}
        yield "savedView", {**kept, "at": iso(view.created_at)}
    for channel in (await channels.listing(gateway, actor)).items:
        yield "channel", channel
    for key in await accounts.keys(gateway, actor):
        yield "apiKey", key
    async for entry in _pages(lambda after: audit.listing(gateway, actor, PAGE, after)):
        yield "change", entry
    async for replay in _pages(lambda after: replays.listing(gateway, actor, PAGE, after)):
        yield "replay", replay


async def _calls(gateway: Gateway) -> AsyncIterator[list[bytes]]:
    """Yields some at a time, with their bodies as base64 to the byte, and without the payload, which says the same again."""
    before = None
    while True:
        page = await gateway.store.history.stretch(before, CALLS_AT_ONCE, MOST_AT_ONCE)
        if page.rows:
            between = page.rows[-1].invocation.id, page.rows[0].invocation.id
            local_runs = await gateway.store.listeners.of_calls(*between)
            marks = await gateway.store.marks.between(*between)
            yield [
                _call(story, local_runs.get(id, []), marks.get(id) or Marks([], []))
                for story in page.rows
                for id in (story.invocation.id,)
            ]
        before = page.next_before
        if before is None:
            return


def _call(story: Story, local_runs: list[ListenerCall], marks: Marks) -> bytes:
    """Puts the line together as text: reading the JSON and writing it again takes as long as all the rest."""
    call = invocation_of(story, None, local_runs, marks)
    for name in ("body", "payload"):
        setattr(call, name, UNSET)
    body = story.invocation.body
    encoded = b"null" if body is None else b'"%s"' % base64.b64encode(body)
    return b'{"kind":"call",%s,"bodyBase64":%s}\n' % (as_json(call)[1:-1], encoded)


async def _pages(ask: Callable[[str | None], Awaitable[Listing[T]]]) -> AsyncIterator[T]:
    cursor = None
    while True:
        page = await ask(cursor)
        for item in page.items:
            yield item
        cursor = page.next_cursor
        if cursor is None:
            return
