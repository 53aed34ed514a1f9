"""One connection: what a caller may do to it, and what it hears when it does something else.

The parser and the cycle of a request and its answer are uvicorn's, but for calls at webhooks, which have a
shorter way (``exchange.py``). Added is what it leaves to a proxy in front: limits on heads, time and bytes,
and answers that arrive although the caller is still sending.
"""

from collections.abc import Callable
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from postern.core import answer as say
from postern.core.address import limit_key
from postern.core.calls.call import Headers
from postern.surfaces.http.crowding import AT_ONCE, Progress, Standing, give_up
from postern.surfaces.http.exchange import Exchange
from postern.surfaces.http.head import LARGEST_HEAD, is_http, wrong_with
from postern.surfaces.http.ingress import PREFIX

MOST_DISCARDED = 64 * 1024 * 1024
IDLE_SECONDS = 75

MakeExchange = Callable[["Protocol", bytes, bytes, Headers, bool], Exchange]


class LingeringTransport:
    """The transport as uvicorn sees it. Closing it while the caller still sends would reset the connection,
    and the answer on its way would be lost with it: so it is closed for writing first, and for good when the
    caller has read and gone."""

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
    """One connection. Everything here is a limit; what a request means is the exchange's or the
    application's."""

    def __init__(self, make_exchange: MakeExchange, most: int, **given: Any) -> None:
        """``most``: so many connections there may be."""
        super().__init__(**given)
        self._make_exchange = make_exchange
        self._most = most
        self.cycle: Any
        self.pipeline: Any

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.transport: Any = LingeringTransport(self, transport)
        self.began: float | None = self.loop.time()
        """Since when a request has been on its way; None while none is."""
        self.lingering = False
        self.gone = False
        self._idle_since = self.began
        self._in_head = True
        self._chunk = 0
        self._received = b""
        """The piece that is being read, and those before it in which the same head began."""
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
        if len(self.connections) > self._most:
            self._make_place(max(1, self._most // AT_ONCE))

    def _make_place(self, number: int) -> None:
        known = [one for one in self.connections if isinstance(one, Protocol)]
        for place in give_up([one.standing() for one in known], number, self.loop.time()):
            known[place].give_up()

    def standing(self) -> Standing:
        address = limit_key(self.client[0]) if self.client else ""
        if self.lingering or self.transport.is_closing():
            return Standing(Progress.IDLE, 0.0, address)
        if self.cycle is not None and not self.cycle.response_complete and self.began is None:
            return Standing(Progress.ANSWERING, 0.0, address)
        if self.began is None or (self.cycle is None and not self._head_at_most):
            return Standing(Progress.IDLE, self._idle_since, address)
        return Standing(Progress.HEAD if self._in_head else Progress.BODY, self.began, address)

    def give_up(self) -> None:
        """Its place is needed at once."""
        if self.standing().progress is not Progress.IDLE:
            self.refuse("temporarily_unavailable")
        self.transport.close_now()

    def connection_lost(self, exc: Exception | None) -> None:
        # uvicorn tells it to the newest request alone, and an earlier one may be waiting for its answer
        self.gone = True
        if isinstance(self.cycle, Exchange):
            self.cycle.abandon()
        super().connection_lost(exc)
        # What is large is let go at once: the rest lies in circles, and collections are rare.
        self.cycle = None
        self.headers = []
        self.scope = None  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        if self.lingering:
            self.discard(len(data))
            return
        if self._refused is not None:
            return
        self._chunk = len(data)
        self._received = self._received[-LARGEST_HEAD:] + data
        try:
            self._feed(data)
        except httptools.HttpParserError:
            self.refuse(self._invalid)
            return
        if not self._in_head:
            self._received = b""
        if self.began is not None:
            self._count(len(data))

    def _feed(self, data: bytes) -> None:
        while True:
            try:
                self.parser.feed_data(data)
                return
            except httptools.HttpParserUpgrade as offer:
                data = self._head_without_offer() + data[offer.args[0] :]

    def _head_without_offer(self) -> bytes:
        """The caller would rather speak another protocol (Java's own client asks every time), and the parser
        stops before the body of such a request. It is answered in this protocol, so it is read once more as
        if it had not asked."""
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
        self.url = b""
        self.headers = []
        self.expect_100_continue = False
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
        invalid = wrong_with(self.parser.get_http_version(), self.headers)
        if invalid is None and not is_http((self.parser.get_method(), self.url), self._received):
            invalid = "malformed_request"
        if invalid is not None:
            self._invalid = invalid
            raise httptools.HttpParserError(invalid)
        if self.parser.should_upgrade():
            if self.parser.get_method() == b"CONNECT":
                raise httptools.HttpParserError("no proxy")
            self._offered = True
            return
        if self._as_sent is not None:
            self.headers, self._as_sent = self._as_sent, None
        if not self._begin_exchange():
            url, headers, expects = self.url, self.headers, self.expect_100_continue
            super().on_message_begin()  # what ASGI wants of every request
            self.headers += headers  # the very list that it has
            self.url, self.expect_100_continue = url, expects
            super().on_headers_complete()
        self._in_head = False
        self._overhead = -self._chunk

    def _begin_exchange(self) -> bool:
        url = self.url
        if url[:1] != b"/":  # http://host/path: rare, and its path counts
            target = httptools.parse_url(url)
            url = (target.path or b"") + (b"?" + target.query if target.query else b"")
        if not url.startswith(PREFIX):
            return False
        keep_alive = self.parser.should_keep_alive() and self.parser.get_http_version() != "1.0"
        url = url.partition(b"#")[0]
        before = self.cycle
        self.cycle = exchange = self._make_exchange(
            self, self.parser.get_method(), url, tuple(self.headers), keep_alive
        )
        if before is None or before.response_complete:
            exchange.begin()
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((exchange, self.app))
        return True

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        if isinstance(cycle, Exchange):
            self.loop.call_soon(
                cycle.begin
            )  # not from here: as many as a packet holds would each begin inside the last one's answer
        else:
            super()._start_asgi_task(cycle, app)

    def when_drained(self, then: Callable[[], None]) -> None:
        """The caller reads slower than we answer."""

        async def wait() -> None:
            await self.flow.drain()
            then()

        task = self.loop.create_task(wait())
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def on_body(self, body: bytes) -> None:
        # Chunks' own lines, their extensions and the trailers together: as much as a head, and as much again
        # as the body.
        self._overhead -= 2 * len(body)
        cycle = self.cycle
        if cycle.response_complete:
            # Refused before it was read: it may finish sending, so that it can read why, but not for ever.
            self.discard(len(body))
        elif isinstance(cycle, Exchange):
            cycle.take(body)
        else:
            super().on_body(body)

    def discard(self, size: int) -> None:
        self._discarded += size
        if self._discarded > MOST_DISCARDED:
            self.transport.abort()

    def on_message_complete(self) -> None:
        if self._offered:
            return
        self.began = None
        cycle = self.cycle
        if cycle.response_complete:
            self._idle_since = self.loop.time()
        elif isinstance(cycle, Exchange):
            cycle.finish()
        else:
            super().on_message_complete()

    def on_response_complete(self) -> None:
        self.server_state.total_requests += 1
        if self._refused is not None and not self.pipeline:
            code, self._refused = self._refused, None
            self.refuse(code)
            return
        self._idle_since = self.loop.time()
        if self.began is not None:
            self.began = self._idle_since  # until now it was we who did not read on
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())

    def may_close_at_once(self) -> bool:
        return self.began is None or self._said_all or self.lingering

    def eof_received(self) -> Any:
        """A caller that has said everything may still listen: it gets its answer, and then the connection
        ends."""
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
        """The answer to what is not a request: said once, after the answers to those before it, and the
        connection closed."""
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
                if isinstance(own, Exchange):
                    own.abandon()
        if after_others:
            self._refused = code
            return
        if own is None or not own.response_started:
            answer = say.refusal(code)
            head = [STATUS_LINE[answer.status], b"connection: close\r\n"]
            head += [name + b": " + value + b"\r\n" for name, value in answer.headers]
            self.transport.write(
                b"".join([*head, f"content-length: {len(answer.body)}\r\n\r\n".encode(), answer.body])
            )
        self.began = self.began or self.loop.time()  # it may be sending still
        self.transport.close()

    def sweep(self, now: float, patience: float) -> None:
        """Asked about once a second: who owes the rest of a request, who does not take an answer, who does
        not hang up."""
        if self.flow.write_paused or self.transport.is_closing():
            self._stuck_since = self._stuck_since or now
            if now - self._stuck_since > patience:
                self.transport.abort()
            return
        self._stuck_since = None
        if self.began is None:
            if now - self._idle_since > IDLE_SECONDS and self.cycle.response_complete:
                self.transport.close()
            return
        if now - self.began <= patience or self.pipeline:
            return
        if not self._in_head or self.cycle is None or self.cycle.response_complete:
            self.refuse("request_timeout")
