"""Calls as they come in, as server-sent events."""

from collections.abc import AsyncIterator
from typing import Annotated

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from postern.core.access.accounts import Actor
from postern.surfaces.rest.framework.operation import INVOCATION_ID, Rows, Text
from postern.surfaces.session import actor_of
from postern.surfaces.streaming import HEADERS, MEDIA_TYPE, Feed
from postern.usecases.answers import as_json
from postern.usecases.history.live import Stream, follow
from postern.usecases.runtime.gateway import Gateway
from postern.usecases.shapes import Shape

row = Rows("History")


class LiveQuery(Shape):
    webhook_id: Text | None = None
    after: Annotated[
        Annotated[str, Field(pattern=INVOCATION_ID)] | None,
        Field(description="Go on from this invocation, as Last-Event-ID does."),
    ] = None


@row(
    "GET", "/live", "Follow invocations",
    answers=str, media_type="text/event-stream", refuses=("rate_limited",),
)  # fmt: skip
async def follow_invocations(
    gateway: Gateway, request: Request, actor: Actor, query: LiveQuery, last_event_id: str | None
) -> Response:
    """Server-sent events: `invocation` when one is recorded, rejected calls too, and `delivery` when its
    deliveries move.

    Each carries the invocation's summary as it is now. After a break an event may come again.
    """
    if request.scope.get("head"):
        return Response(headers=HEADERS, media_type=MEDIA_TYPE)
    after = last_event_id or query.after
    stream = await follow(gateway, actor, lambda: actor_of(gateway, request), query.webhook_id or None, after)
    return Feed(stream, _lines(stream))


async def _lines(stream: Stream) -> AsyncIterator[bytes]:
    newest = ""
    yield b"retry: 1000\n: live\n\n"
    async for event in stream.events():
        if event is None:
            yield b": still here\n\n"
            continue
        # An older invocation that moves must not set the place to resume from back.
        place = f"id: {event.invocation_id}\n".encode() if event.invocation_id > newest else b""
        newest = max(newest, event.invocation_id)
        yield place + f"event: {event.name}\ndata: ".encode() + as_json(event.summary) + b"\n\n"
