"""One connection: what a caller may do to it, and what it hears when it does something else.

The parser and the cycle of a request and its answer are uvicorn's. Added is what it leaves to a proxy in front: limits on
heads, time and bytes, and answers that arrive although the caller is still sending.
"""

from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from postern.core import answer as say

LARGEST_HEAD = 32 * 1024
MOST_DISCARDED = 64 * 1024 * 1024


class Door:
    """The transport as uvicorn sees it. Closing it while the caller still sends would reset the connection, and the answer
    on its way would be lost with it: so it is closed for writing first, and for good when the caller has read and gone."""

    __slots__ = ("_protocol", "_transport", "abort", "get_extra_info", "write")

    def __init__(self, protocol: "Protocol", transport: Any) -> None:
        self._protocol = protocol
        self._transport = transport
        self.write = transport.write
        self.abort = transport.abort
        self.get_extra_info = transport.get_extra_info

    def is_closing(self) -> bool:
        return self._protocol.lingering or self._transport.is_closing()

    def close(self) -> None:
        if self._protocol.may_close_at_once():
            self._transport.close()
        elif not self._transport.is_closing():
            self._protocol.lingering = True
            self._protocol.flow.resume_reading()
            self._transport.write_eof()

    def close_now(self) -> None:
        self._transport.close()


class Protocol(HttpToolsProtocol):
    """One connection. Everything here is a limit; what a request means is the application's."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.transport: Any = Door(self, transport)
        self.began: float | None = self.loop.time()
        """Since when a request has been on its way; None while none is."""
        self.lingering = False
        self._in_head = True
        self._chunk = 0
        self._head_at_most = 0
        self._head_at_least = 0
        self._overhead = 0
        self._discarded = 0
        self._invalid = "malformed_request"
        self._refused: str | None = None
        self._offered = False
        self._as_sent: list[tuple[bytes, bytes]] | None = None
        self._stuck_since: float | None = None
        self._said_all = False

    def data_received(self, data: bytes) -> None:
        if self.lingering:
            self._discard(len(data))
            return
        if self._refused is not None:
            return
        self._unset_keepalive_if_required()
        self._chunk = len(data)
        try:
            self._feed(data)
        except httptools.HttpParserError:
            self.refuse(self._invalid)
            return
        if self.began is not None:
            self._count(len(data))
        elif self.timeout_keep_alive_task is None and self.cycle.response_complete and not self.transport.is_closing():
            # Answered before it was read whole: uvicorn's own idle timer has been and gone.
            self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)

    def _feed(self, data: bytes) -> None:
        while True:
            try:
                self.parser.feed_data(data)
                return
            except httptools.HttpParserUpgrade as offer:
                data = self._head_without_offer() + data[offer.args[0] :]

    def _head_without_offer(self) -> bytes:
        """The caller would rather speak another protocol (Java's own client asks every time), and the parser stops before the
        body of such a request. It is answered in this protocol, so it is read once more as if it had not asked."""
        method, version = self.parser.get_method(), self.parser.get_http_version().encode()
        lines = [name + b": " + value for name, value in self.headers if name != b"upgrade"]
        self._as_sent = self.headers
        self._offered = False
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        return b"\r\n".join([method + b" " + self.url + b" HTTP/" + version, *lines, b"", b""])

    def _count(self, size: int) -> None:
        """The parser keeps a line to itself until it ends: what has come in is counted here."""
        if self._in_head:
            self._head_at_most += size
            self._head_at_least += size
            if self._head_at_least > LARGEST_HEAD:
                self.refuse("headers_too_large")
        else:
            self._overhead += size
            if self._overhead > LARGEST_HEAD:
                self.refuse("malformed_request")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.began = self.loop.time()
        self._in_head = True
        self._discarded = self._head_at_most = 0
        self._head_at_least = -self._chunk  # the piece in which it begins may hold other requests before it

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._in_head:
            return  # a trailer, sent after the body: it must not pass for a header
        name = name.lower()
        if name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        if (
            self._head_at_most + self._chunk > LARGEST_HEAD
            and len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers) > LARGEST_HEAD
        ):
            self._invalid = "headers_too_large"
            raise httptools.HttpParserError("headers too large")
        if self.parser.should_upgrade():
            if self.parser.get_method() == b"CONNECT":
                raise httptools.HttpParserError("no proxy")
            self._offered = True
            return
        if self._as_sent is not None:
            self.headers[:], self._as_sent = self._as_sent, None
        super().on_headers_complete()
        self._in_head = False
        self._overhead = -self._chunk

    def on_body(self, body: bytes) -> None:
        # Chunks' own lines, their extensions and the trailers together: as much as a head, and as much again as the body.
        self._overhead -= 2 * len(body)
        if self.cycle.response_complete:
            # Refused before it was read: it may finish sending, so that it can read why, but not for ever.
            self._discard(len(body))
            return
        super().on_body(body)

    def _discard(self, size: int) -> None:
        self._discarded += size
        if self._discarded > MOST_DISCARDED:
            self.transport.abort()

    def on_message_complete(self) -> None:
        if self._offered:
            return
        self.began = None
        super().on_message_complete()

    def on_response_complete(self) -> None:
        if self._refused is not None and not self.pipeline:
            code, self._refused = self._refused, None
            self.refuse(code)
            return
        if self.began is not None:
            self.began = self.loop.time()  # until now it was we who did not read on
        super().on_response_complete()

    def may_close_at_once(self) -> bool:
        return self.began is None or self._said_all or self.lingering

    def eof_received(self) -> Any:
        """A caller that has said everything may still listen: it gets its answer, and then the connection ends."""
        self._said_all = True
        if self.lingering or self.cycle is None or self._refused is not None:
            return self._refused is not None
        if self.began is not None:
            self.refuse("malformed_request")
            return self._refused is not None
        if self.cycle.response_complete:
            return False
        self.cycle.keep_alive = False
        return True

    def shutdown(self) -> None:
        if self.lingering or self.cycle is None or self.cycle.response_complete:
            self.transport.close_now()
        else:
            self.cycle.keep_alive = False

    def refuse(self, code: str) -> None:
        """The answer to what is not a request: said once, after the answers to those before it, and the connection closed."""
        if self.transport.is_closing():
            return
        own = None if self._in_head or self.began is None else self.cycle
        if own is None:
            after_others = self.cycle is not None and not self.cycle.response_complete
        else:
            after_others = bool(self.pipeline)
            if self.pipeline:
                self.pipeline.popleft()  # its own place in the row
            elif not own.response_complete:
                own.disconnected = True
                own.message_event.set()
        if after_others:
            self._refused = code
            return
        if own is None or not own.response_started:
            answer = say.refusal(code)
            head = [STATUS_LINE[answer.status], b"connection: close\r\n"]
            head += [name + b": " + value + b"\r\n" for name, value in answer.headers]
            self.transport.write(b"".join([*head, f"content-length: {len(answer.body)}\r\n\r\n".encode(), answer.body]))
        self.began = self.began or self.loop.time()  # it may be sending still
        self.transport.close()

    def sweep(self, now: float, patience: float) -> None:
        """Asked about once a second: who owes the rest of a request, who does not take an answer, who does not hang up."""
        if self.flow.write_paused or self.transport.is_closing():
            self._stuck_since = self._stuck_since or now
            if now - self._stuck_since > patience:
                self.transport.abort()
            return
        self._stuck_since = None
        if self.began is None or now - self.began <= patience or self.pipeline:
            return
        if not self._in_head or self.cycle is None or self.cycle.response_complete:
            self.refuse("request_timeout")
