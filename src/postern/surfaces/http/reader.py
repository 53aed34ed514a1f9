"""Bytes in, requests out: heads, pieces of bodies and ends, as they come, or the reason why it is no request.

The parser is httptools. Added is what it leaves open: how much one request may be, heads that are not HTTP's, and
offers to speak another protocol.
"""

import re
from collections.abc import Callable
from typing import Any

import httptools
from msgspec import Struct

from postern.core.calls.call import Headers
from postern.observe.logs import Log
from postern.surfaces.http.states import Event

LARGEST_HEAD = 32 * 1024

_is_host = re.compile(rb"[A-Za-z0-9._~!$&'()*+,;=:%\[\]-]*").fullmatch

log = Log()

# Python 3.11 takes ten times as long to find an enum's member as a name, and each request needs all three.
_HEAD_BEGUN, _BODY_PIECE, _REQUEST_WHOLE = Event.HEAD_BEGUN, Event.BODY_PIECE, Event.REQUEST_WHOLE


class Request(Struct, frozen=True):
    """A request's head. Names of headers are lower-case."""

    method: bytes
    path: bytes
    query: bytes
    headers: Headers
    by_name: dict[bytes, bytes]
    """The last value of each: looked up here first, and again wherever the call is judged."""
    version: str
    keep_alive: bool
    """Whether the connection may go on after the answer."""
    chunked: bool
    asks_first: bool
    """Its caller waits for 100 Continue before it sends the body."""

    def __repr__(self) -> str:
        """Without what may carry a credential: headers and query."""
        return f"Request({self.method!r} {self.path!r})"


def read_head(
    method: bytes,
    url: bytes,
    version: str,
    headers: list[tuple[bytes, bytes]],
    keep_alive: bool,
    received: bytes,
) -> Request | str:
    """The head (RFC 9112), or why it is refused. ``received`` is what it came in.

    The parser lets more through, and where a proxy in front reads a request differently, one request becomes two."""
    by_name = dict(headers)
    host = by_name.get(b"host")
    if (version != "1.1" and version != "1.0") or (host is None and version == "1.1"):
        return "malformed_request"
    if host and not _is_host(host):
        return "malformed_request"
    if len(by_name) < len(headers) and [name for name, _ in headers].count(b"host") > 1:
        return "malformed_request"
    chunked = b"transfer-encoding" in by_name
    if chunked and (fault := _wrong_with_codings(version, headers)):
        return fault
    line = method + b" " + url
    if not received.startswith(line + b" HTTP/") and (line + b" RTSP/" in received or method == b"SOURCE"):
        return "malformed_request"  # RTSP or ICE: the parser takes them for HTTP, and does not say so
    if url[:1] == b"/":
        path, _, query = url.partition(b"#")[0].partition(b"?")
    else:  # http://host/path: rare, and its path counts
        target = httptools.parse_url(url)
        path, query = target.path or b"", target.query or b""
    if not path or not path.isascii():
        return "malformed_request"
    # Whoever speaks HTTP/1.0 knows no 100 Continue, and would take it for the answer.
    asks_first = by_name.get(b"expect", b"").lower() == b"100-continue" and version != "1.0"
    keep_alive = keep_alive and version != "1.0"
    return Request(method, path, query, tuple(headers), by_name, version, keep_alive, chunked, asks_first)


def _wrong_with_codings(version: str, headers: list[tuple[bytes, bytes]]) -> str | None:
    named = [value.split(b",") for name, value in headers if name == b"transfer-encoding"]
    codings = [coding for value in named for one in value if (coding := one.strip(b" \t").lower())]
    if version == "1.0" or codings[-1:] != [b"chunked"] or codings.count(b"chunked") > 1:
        return "malformed_request"
    return "unsupported_transfer_coding" if len(codings) > 1 else None


class RequestSize:
    """How many bytes one request has had, of its head and of what is neither head nor body.

    Bytes come in pieces, and the parser keeps a line to itself until it ends: so a piece is counted as a whole,
    and what is known to be something else is taken off.
    """

    __slots__ = ("_head_at_least", "_head_at_most", "_overhead", "counts", "piece")

    def __init__(self) -> None:
        self.piece = 0
        """The size of what is being parsed."""
        self._overhead = self._head_at_least = self._head_at_most = 0
        self.counts: str | None = "head"
        """What of it is counted now: its head, or what is in a chunked body beside the body. Of a body whose
        length was given every byte is one of the body."""

    def head_begun(self) -> None:
        self.counts = "head"
        self._head_at_most = 0
        self._head_at_least = -self.piece  # the piece in which it begins may hold other requests before it

    def head_fits(self, url: bytes, headers: list[tuple[bytes, bytes]]) -> bool:
        """Asked at its end."""
        return self._head_at_most + self.piece <= LARGEST_HEAD or (
            len(url) + sum(len(name) + len(value) + 4 for name, value in headers) <= LARGEST_HEAD
        )

    def body_begun(self, chunked: bool) -> None:
        self.counts = "overhead" if chunked else None
        self._overhead = -self.piece

    def body(self, size: int) -> None:
        # Chunks' own lines, their extensions and the trailers together: as much as a head, and as much again
        # as the body.
        self._overhead -= 2 * size

    def parsed(self) -> str | None:
        """The piece is over. What is wrong with the request, if anything is."""
        if self.counts == "head":
            self._head_at_most += self.piece
            self._head_at_least += self.piece
            return "headers_too_large" if self._head_at_least > LARGEST_HEAD else None
        self._overhead += self.piece
        return "too_much_around_chunks" if self._overhead > LARGEST_HEAD else None


class RequestReader:
    """``on_event`` hears of everything but heads, a piece of a body with it."""

    __slots__ = ("_event", "_fault", "_headers", "_offered", "_on_head", "_parser", "_piece", "_size", "_url", "_without_offer")  # fmt: skip

    def __init__(self, on_event: Callable[[Event, bytes], None], on_head: Callable[[Request], None]) -> None:
        self._event = on_event
        self._on_head = on_head
        self._fault = "malformed_request"
        self._size = RequestSize()
        self._piece = b""
        """What is being parsed, and what came before it of the same head."""
        self._url = b""
        self._headers: list[tuple[bytes, bytes]] | None = None
        """None while no head is coming in."""
        self._offered = False
        self._without_offer: list[tuple[bytes, bytes]] | None = None
        self._parser: Any = self._new_parser()

    def read(self, data: bytes) -> str | None:
        """Why this cannot be a request. Nothing more is to be read then."""
        self._size.piece = len(data)
        self._piece = self._piece[-LARGEST_HEAD:] + data if self._piece else data
        while True:
            try:
                self._parser.feed_data(data)
            except httptools.HttpParserUpgrade as offer:
                data = self._head_without_offer() + data[offer.args[0] :]
            except httptools.HttpParserError as error:
                return self._why(error)
            else:
                break
        if self._headers is None:
            self._piece = b""
        return self._size.parsed() if self._size.counts is not None else None

    def close(self) -> None:
        """The parser refers back to us: a reference cycle, which only the garbage collector would free, and it runs
        rarely."""
        self._parser = None

    # What the parser calls

    def on_message_begin(self) -> None:
        self._url = b""
        self._headers = []
        self._size.head_begun()
        if self._without_offer is None:
            self._event(_HEAD_BEGUN, b"")

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        headers = self._headers
        if headers is not None:  # a trailer, sent after the body, must not pass for a header
            headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        parser, headers = self._parser, self._headers
        assert headers is not None
        if not self._size.head_fits(self._url, headers):
            raise self._refused("headers_too_large")
        method = parser.get_method()
        if parser.should_upgrade():
            if method == b"CONNECT":
                raise self._refused("malformed_request")
            self._offered = True
            return
        self._headers = None
        if self._without_offer is not None:
            headers, self._without_offer = self._without_offer, None
        head = read_head(
            method, self._url, parser.get_http_version(), headers, parser.should_keep_alive(), self._piece
        )
        if isinstance(head, str):
            raise self._refused(head)
        self._size.body_begun(head.chunked)
        self._on_head(head)

    def on_body(self, body: bytes) -> None:
        if self._size.counts is not None:
            self._size.body(len(body))
        self._event(_BODY_PIECE, body)

    def on_message_complete(self) -> None:
        if not self._offered:
            self._event(_REQUEST_WHOLE, b"")

    def _new_parser(self) -> Any:
        parser = httptools.HttpRequestParser(self)
        # Callers do send the next request behind one that is to be the last: it is read and not answered.
        parser.set_dangerous_leniencies(lenient_data_after_close=True)
        return parser

    def _head_without_offer(self) -> bytes:
        """The caller would rather speak another protocol (Java's own client asks every time), and the parser
        stops before the body of such a request. It is answered in this protocol, so it is read once more as
        if it had not asked."""
        assert self._headers is not None
        method, version = self._parser.get_method(), self._parser.get_http_version().encode()
        lines = [name + b": " + value for name, value in self._headers if name != b"upgrade"]
        self._without_offer = self._headers
        self._offered = False
        self._parser = self._new_parser()
        return b"\r\n".join([method + b" " + self._url + b" HTTP/" + version, *lines, b"", b""])

    def _refused(self, fault: str) -> httptools.HttpParserError:
        """To be raised where the parser calls us, which stops it."""
        self._fault = fault
        return httptools.HttpParserError(fault)

    def _why(self, error: httptools.HttpParserError) -> str:
        raised = error.__context__  # in what the parser called
        if raised is not None and not isinstance(raised, httptools.HttpParserError):
            log.error("a request could not be read", exc_info=raised)
        return self._fault
