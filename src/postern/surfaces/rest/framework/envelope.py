"""What every answer of the API carries, and HEAD wherever there is GET."""

import re
import time
from uuid import uuid4

from starlette.types import ASGIApp, Message, Receive, Scope, Send

_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,100}")

ALWAYS = {
    b"x-content-type-options": b"nosniff",
    b"cache-control": b"no-store",
    b"referrer-policy": b"no-referrer",
    b"content-security-policy": b"default-src 'none'; frame-ancestors 'none'",
}


class Envelope:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        head = scope["method"] == "HEAD"
        given = next((value for name, value in scope["headers"] if name == b"x-request-id"), b"")
        request_id = given if _REQUEST_ID.fullmatch(given) else uuid4().hex.encode()

        async def enveloped(message: Message) -> None:
            if message["type"] == "http.response.start":
                there = {name.lower() for name, _ in message["headers"]}
                added = [(name, value) for name, value in ALWAYS.items() if name not in there]
                timing = f"app;dur={(time.perf_counter() - began) * 1000:.1f}".encode()
                message["headers"] = [
                    *message["headers"],
                    *added,
                    (b"x-request-id", request_id),
                    (b"server-timing", timing),
                ]
            elif head and message["type"] == "http.response.body":
                message = {**message, "body": b""}
            await send(message)

        if head:
            scope = {**scope, "method": "GET", "head": True}
        await self._app(scope, receive, enveloped)
