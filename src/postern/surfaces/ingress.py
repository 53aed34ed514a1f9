"""Where calls arrive: read at most N bytes, keep them untouched, ask, answer. Bare ASGI; no framework on this path."""

from collections.abc import Awaitable, Callable
from typing import Any

import structlog

from postern.core import answer as say
from postern.core.address import Allowlist, client_address
from postern.core.admit import Verdict, admit, admit_head, too_large
from postern.core.answer import Answer
from postern.core.call import Call
from postern.core.webhook import Webhook
from postern.observe import unknown_codes
from postern.usecases.gateway import Gateway
from postern.usecases.receive import receive

PREFIX = b"/webhook/"

log = structlog.get_logger("postern.ingress")

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


class Disconnected(Exception):
    """The caller has gone before its request was whole: there is nobody to answer and nothing to record."""


class Ingress:
    def __init__(self, gateway: Gateway, trusted_proxies: Allowlist, client_header: str) -> None:
        self._gateway = gateway
        self._trusted = trusted_proxies
        self._client_header = client_header.lower().encode()
        self._unknown = say.refusal("webhook_not_found")

    async def __call__(self, scope: dict[str, Any], receive_message: Receive, send: Send) -> None:
        try:
            await self._answer(scope, receive_message, send)
        except Exception:
            log.exception("a call could not be answered")
            await respond(send, say.refusal("internal_error"), close=True)

    async def _answer(self, scope: dict[str, Any], receive_message: Receive, send: Send) -> None:
        webhook = self._gateway.directory.by_code(scope["raw_path"][len(PREFIX) :].decode("latin-1"))
        if webhook is None:
            unknown_codes.inc()
            await respond(send, self._unknown, close=_awaits_continue(scope))
            return
        if self._gateway.ending and webhook.answer_timeout is not None:
            await respond(send, say.refusal("temporarily_unavailable"), close=True)
            return
        call = self._call(scope)
        verdict = admit_head(webhook, call)
        unread = verdict is not None
        if verdict is None:
            try:
                verdict = await self._judge(webhook, call, receive_message)
            except Disconnected:
                return
            unread = verdict.code == "payload_too_large"
        answer = await receive(self._gateway, webhook, call, verdict)
        await respond(send, answer, close=unread and _awaits_continue(scope))

    async def _judge(self, webhook: Webhook, call: Call, receive_message: Receive) -> Verdict:
        """Count while streaming: a length that was promised proves nothing, and one byte too many is enough."""
        promised = call.first_header(b"content-length")
        if promised is not None and promised.isdigit() and int(promised[:19]) > webhook.payload_limit:
            return too_large(webhook)
        message = await receive_message()
        if not message.get("more_body") and message["type"] == "http.request":
            call.body = message["body"]
        else:
            chunks, size = [], 0
            while True:
                if message["type"] == "http.disconnect":
                    raise Disconnected
                chunks.append(message["body"])
                size += len(message["body"])
                if size > webhook.payload_limit or not message.get("more_body"):
                    break
                message = await receive_message()
            call.body = b"".join(chunks)
        if len(call.body) > webhook.payload_limit:
            call.body = b""
            return too_large(webhook)
        return admit(webhook, call, self._gateway.limits)

    def _call(self, scope: dict[str, Any]) -> Call:
        return Call(
            method=scope["method"],
            path=scope["raw_path"],
            query=scope["query_string"],
            headers=tuple(scope["headers"]),
            body=b"",
            address=self.address_of(scope),
            received_at=self._gateway.clock(),
            base_url=self._gateway.base_url,
        )

    def address_of(self, scope: dict[str, Any]) -> str:
        """Who is calling: the peer, or behind trusted proxies whom they name."""
        client = scope["client"]
        peer: str | None = client[0] if client else None
        if self._trusted or peer is None or ":" in peer:
            forwarded = [value for name, value in scope["headers"] if name == self._client_header]
            return client_address(peer, forwarded, self._trusted, self._client_header)
        return peer


def _awaits_continue(scope: dict[str, Any]) -> bool:
    """A caller that asked before sending its body may send it or not after a refusal: only a closed connection is unambiguous."""
    return any(name == b"expect" for name, _ in scope["headers"])


async def respond(send: Send, answer: Answer, close: bool = False) -> None:
    headers = [*answer.headers, (b"content-length", str(len(answer.body)).encode())] if answer.status not in (204, 304) else answer.headers
    if close:
        headers = [*headers, (b"connection", b"close")]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})
