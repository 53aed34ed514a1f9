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
from postern.observe.logs import log
from postern.surfaces.http.states import ConnectionEvent

LARGEST_HEAD = 32 * 1024

_after_line_ends = re.compile(rb"[\r\n]*").match
"""Line ends between two requests mean nothing."""
_is_host = re.compile(rb"[A-Za-z0-9._~!$&'()*+,;=:%\[\]-]*").fullmatch

# Python 3.11 takes ten times as long to find an enum's member as a name, and each request needs all three.
_HEAD_BEGUN, _BODY_PIECE, _REQUEST_WHOLE = (
    ConnectionEvent.HEAD_BEGUN,
    ConnectionEvent.BODY_PIECE,
    ConnectionEvent.REQUEST_WHOLE,
)


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
        """Shows nothing that may carry a credential: no headers and no query."""
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
    # A client of HTTP/1.0 knows no 100 Continue, and would take it for the answer.
    asks_first = by_name.get(b"expect", b"").lower() == b"100-continue" and version != "1.0"
    keep_alive = keep_alive and version != "1.0"
    return Request(method, path, query, tuple(headers), by_name, version, keep_alive, chunked, asks_first)


def _wrong_with_codings(version: str, headers: list[tuple[bytes, bytes]]) -> str | None:
    named = [value.split(b",") for name, value in headers if name == b"transfer-encoding"]
    codings = [coding for value in named for one in value if (coding := one.strip(b" \t").lower())]
    if version == "1.0" or codings[-1:] != [b"chunked"] or codings.count(b"chunked") > 1:
        return "malformed_request"
    return "unsupported_transfer_coding" if len(codings) > 1 else None


class RequestReader:
    """``on_event`` hears of everything but heads, a piece of a body with it.

    One request at a time: what has come behind it is kept until the connection asks for it. The parser cannot be stopped
    between two requests, so it is given bytes up to where one may end, and never more.
    """

    __slots__ = ("_around_chunks", "_at", "_body_left", "_bytes", "_chunked", "_event", "_fault", "_head", "_headers", "_offered", "_on_head", "_parser", "_tail", "_url", "_whole", "_without_offer")  # fmt: skip

    def __init__(
        self, on_event: Callable[[ConnectionEvent, bytes], None], on_head: Callable[[Request], None]
    ) -> None:
        self._event = on_event
        self._on_head = on_head
        self._fault = "malformed_request"
        self._bytes = b""
        self._at = 0
        """The place in ``_bytes`` where reading goes on."""
        self._head = b""
        """The part of the current head that has come."""
        self._tail = b""
        """The end of it, or of a chunk's frame: an empty line may come in two pieces."""
        self._body_left = 0
        self._chunked = False
        self._around_chunks = 0
        """Bytes of chunks' own lines, their extensions and the trailers, less those of the body."""
        self._url = b""
        self._headers: list[tuple[bytes, bytes]] | None = None
        """None while no head is coming in."""
        self._whole = False
        self._offered = False
        self._without_offer: list[tuple[bytes, bytes]] | None = None
        self._parser: Any = self._new_parser()

    @property
    def kept(self) -> int:
        """Bytes that have come and are not read yet."""
        return len(self._bytes) - self._at

    def keep(self, data: bytes) -> None:
        self._bytes, self._at = self._bytes[self._at :] + data, 0

    def read(self, data: bytes) -> str | None:
        """Reads at most to the end of a request. Returns the problem if this is no request: nothing more may be read
        then."""
        if self._at < len(self._bytes):
            self.keep(data)
        else:
            self._bytes, self._at = data, 0
        self._whole = False
        received, at = self._bytes, self._at
        size = len(received)
        while at < size and not self._whole and self._parser is not None:
            begin, in_body = at, self._body_left > 0
            if in_body:
                at = min(size, begin + self._body_left)
                self._body_left -= at - begin
            else:
                if self._headers is None and not self._chunked and received[begin] in b"\r\n":
                    begin = _after_line_ends(received, begin).end()  # type: ignore[union-attr] # it always matches
                at = self._end_of_frame(begin)
            self._at = at
            piece = received if at - begin == size else received[begin:at]
            if fault := self._feed(piece) if in_body else self._read_frame(piece):
                return fault
        if self._at == len(self._bytes):
            self._bytes, self._at = b"", 0
        return None

    def close(self) -> None:
        """The parser refers back to us: a reference cycle, which only the garbage collector would free, and it runs
        rarely."""
        self._parser = None
        self._bytes, self._at = b"", 0

    def _end_of_frame(self, at: int) -> int:
        """Returns the end of the next empty line: a head ends there, or a body in chunks may."""
        data = self._bytes
        if tail := self._tail:
            place = (tail + data[at : at + 3]).find(b"\r\n\r\n")
            if place >= 0:
                return at + place + 4 - len(tail)
        place = data.find(b"\r\n\r\n", at)
        return len(data) if place < 0 else place + 4

    def _read_frame(self, piece: bytes) -> str | None:
        if self._chunked:
            self._around_chunks += len(piece)
            self._tail = (self._tail + piece)[-3:]
        else:
            head = self._head = self._head + piece if self._head else piece
            if len(head) > LARGEST_HEAD:
                return "headers_too_large"
            self._tail = head[-3:]
        return self._feed(piece)

    def _feed(self, piece: bytes) -> str | None:
        while True:
            try:
                self._parser.feed_data(piece)
            except httptools.HttpParserUpgrade as offer:
                piece = self._head_without_offer() + piece[offer.args[0] :]
            except httptools.HttpParserError as error:
                return self._why(error)
            else:
                # As much as a head, and as much again as the body.
                return "too_much_around_chunks" if self._around_chunks > LARGEST_HEAD else None

    # Called by the parser

    def on_message_begin(self) -> None:
        self._url = b""
        self._headers = []
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
            method, self._url, parser.get_http_version(), headers, parser.should_keep_alive(), self._head
        )
        if isinstance(head, str):
            raise self._refused(head)
        self._head = self._tail = b""
        if head.chunked:
            self._chunked = True
        elif length := head.by_name.get(b"content-length"):
            self._body_left = int(length)
        self._on_head(head)

    def on_body(self, body: bytes) -> None:
        if self._chunked:
            self._around_chunks -= 2 * len(body)
        self._event(_BODY_PIECE, body)

    def on_message_complete(self) -> None:
        if not self._offered:
            self._whole = True
            if self._chunked:
                self._chunked, self._around_chunks, self._tail = False, 0, b""
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
        """Makes the error that stops the parser. To be raised where the parser calls us."""
        self._fault = fault
        return httptools.HttpParserError(fault)

    def _why(self, error: httptools.HttpParserError) -> str:
        raised = error.__context__  # in what the parser called
        if raised is not None and not isinstance(raised, httptools.HttpParserError):
            log.error("a request could not be read", exc_info=raised)
        return self._fault
