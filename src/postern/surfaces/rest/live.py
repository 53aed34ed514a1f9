"""Calls as they come in, as server-sent events."""

from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import Header, Query
from starlette.requests import Request
from starlette.responses import Response

from postern.surfaces.rest.table import Asking, Table
from postern.surfaces.session import actor_of
from postern.surfaces.streaming import HEADERS, MEDIA_TYPE, Feed
from postern.usecases.history.live import Stream, follow
from postern.usecases.runtime.gateway import Gateway

ID = "^inv_[0-9a-f]{32}$"


def live_rows(table: Table, gateway: Gateway) -> None:
    @table.of("History").row(
        "GET", "/live", "Follow invocations",
        level="read", answers={"type": "string"}, media_type="text/event-stream", refuses=("rate_limited",),
    )  # fmt: skip
    async def follow_invocations(
        request: Request,
        actor: Asking,
        webhook_id: Annotated[str | None, Query(alias="webhookId", max_length=80)] = None,
        after: Annotated[
            str | None, Query(pattern=ID, description="Go on from this invocation, as Last-Event-ID does.")
        ] = None,
        last_event_id: Annotated[
            str | None, Header(alias="Last-Event-ID", pattern=ID, description="The last event that was seen.")
        ] = None,
    ) -> Any:
        """Server-sent events: `invocation` when one is recorded, rejected calls too, and `delivery` when its
        deliveries move.

        Each carries the invocation's summary as it is now. After a break an event may come again.
        """
        if request.scope.get("head"):
            return Response(headers=HEADERS, media_type=MEDIA_TYPE)
        stream = await follow(
            gateway, actor, lambda: actor_of(gateway, request), webhook_id or None, last_event_id or after
        )
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
        yield place + f"event: {event.name}\ndata: ".encode() + event.data + b"\n\n"
