"""Answers that end when their client leaves: calls as server-sent events, for the API's stream and the console's, and work
that takes long."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from postern.core.history.invocation import StoreUnavailable
from postern.core.problems import Refused
from postern.usecases.history.live import Stream

T = TypeVar("T")

# A proxy that collects an answer before it passes it on would hold events back for ever.
HEADERS = {"x-accel-buffering": "no", "cache-control": "no-store"}
MEDIA_TYPE = "text/event-stream; charset=utf-8"


async def _while_the_store_is_there(
    lines: AsyncIterator[str] | AsyncIterator[bytes],
) -> AsyncIterator[str | bytes]:
    """Ends the stream when the database is away: clients ask again, so this is no defect."""
    with suppress(StoreUnavailable):
        async for line in lines:
            yield line


class Feed(StreamingResponse):
    """A stream that always unsubscribes, even if the first event was never asked for."""

    def __init__(self, stream: Stream, lines: AsyncIterator[str] | AsyncIterator[bytes]) -> None:
        super().__init__(_while_the_store_is_there(lines), headers=HEADERS, media_type=MEDIA_TYPE)
        self._stream = stream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._stream.close()


async def while_connected(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Returns the result of the work, or cancels it when the client closes the connection: each letter that is
    typed into a search box starts a search and leaves the one before."""
    working = asyncio.create_task(work)
    leaving = asyncio.create_task(_gone(request))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise Refused("malformed_request", "the client has left")
        return working.result()
    finally:
        working.cancel()
        leaving.cancel()


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
