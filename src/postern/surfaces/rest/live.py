"""Calls as they come in, as server-sent events."""

from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import Header, Query
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from postern.surfaces.rest.table import Asking, Table
from postern.surfaces.session import actor_of
from postern.usecases.gateway import Gateway
from postern.usecases.live import Stream, follow

# A proxy that collects an answer before it passes it on would hold events back for ever.
HEADERS = {"x-accel-buffering": "no", "cache-control": "no-store"}
ID = "^inv_[0-9a-f]{32}$"
MEDIA_TYPE = "text/event-stream; charset=utf-8"


class LiveResponse(StreamingResponse):
    """Leaves the hub however it ends, even before the first event was asked for."""

    def __init__(self, stream: Stream, lines: AsyncIterator[bytes]) -> None:
        super().__init__(lines, headers=HEADERS, media_type=MEDIA_TYPE)
        self._stream = stream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._stream.close()


def live_rows(table: Table, gateway: Gateway) -> None:
    @table.of("History").row(
        "GET", "/live", "Follow invocations",
        level="read", answers={"type": "string"}, media_type="text/event-stream", refuses=("rate_limited",),
    )  # fmt: skip
    async def follow_invocations(
        request: Request,
        actor: Asking,
        webhook_id: Annotated[str | None, Query(alias="webhookId", max_length=80)] = None,
        after: Annotated[str | None, Query(pattern=ID, description="Go on from this invocation, as Last-Event-ID does.")] = None,
        last_event_id: Annotated[str | None, Header(alias="Last-Event-ID", pattern=ID, description="The last event that was seen.")] = None,
    ) -> Any:
        """Server-sent events: `invocation` when one is recorded, rejected calls too, and `delivery` when its deliveries move.

        Each carries the invocation's summary as it is now. After a break an event may come again.
        """
        if request.scope.get("head"):
            return Response(headers=HEADERS, media_type=MEDIA_TYPE)
        stream = await follow(gateway, actor, lambda: actor_of(gateway, request), webhook_id or None, last_event_id or after)
        return LiveResponse(stream, _lines(stream))


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
        yield place + f"event: {event.name}\ndata: ".encode() + event.data + b"\n\n"
