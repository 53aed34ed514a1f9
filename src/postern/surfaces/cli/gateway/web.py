"""Requests over the network, by the standard library: it loads quickly, and every command waits for it."""

import os
import ssl
from collections.abc import Callable, Mapping
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection, IncompleteRead
from urllib.parse import SplitResult
from urllib.request import AbstractHTTPHandler, OpenerDirector, ProxyHandler, Request

from postern.surfaces.cli.run import plain

FAILURES = (OSError, HTTPException, ValueError)
"""Why a request has no answer. ``ValueError``: the address cannot be one, or a header cannot be sent."""

CONNECT_WITHIN = 10.0
PART = 64 * 1024


class Web:
    """Each request has a connection of its own. Redirects are not followed."""

    def __init__(self, trusted: ssl.SSLContext, by_proxy: bool) -> None:
        """``by_proxy``: through the proxy that the environment names, if it names one."""
        self._opener = OpenerDirector()
        self._opener.add_handler(ProxyHandler(None if by_proxy else {}))
        self._opener.add_handler(_Handler(trusted))

    def ask(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, within: float
    ) -> HTTPResponse:
        """Waits ``within`` seconds for each part of the answer. Raises one of ``FAILURES``."""
        request = Request(url, body, dict(headers), method=method)
        response: HTTPResponse = self._opener.open(request, timeout=within)
        return response


class PlainConnection(HTTPConnection):
    def connect(self) -> None:
        _connect(self, super().connect)


class SecureConnection(HTTPSConnection):
    def connect(self) -> None:
        _connect(self, super().connect)


def _connect(connection: HTTPConnection, connect: Callable[[], None]) -> None:
    """An answer may take long, and a connection may not."""
    within = connection.timeout or CONNECT_WITHIN
    connection.timeout = min(within, CONNECT_WITHIN)
    connect()
    connection.sock.settimeout(within)


class _Handler(AbstractHTTPHandler):
    def __init__(self, trusted: ssl.SSLContext) -> None:
        super().__init__()
        self._trusted = trusted

    def http_open(self, req: Request) -> HTTPResponse:
        return self.do_open(PlainConnection, req)

    def https_open(self, req: Request) -> HTTPResponse:
        return self.do_open(SecureConnection, req, context=self._trusted)


class _Answer(HTTPResponse):
    """Refuses a damaged head. The standard library passes over what it does not understand, and all headers after it."""

    def begin(self) -> None:
        super().begin()
        while self.status < 200:  # like 103 Early Hints: the answer is still to come
            if self.status == 101:
                raise HTTPException("it begins to speak another protocol")
            self.headers = None  # type: ignore[assignment] # it has not begun
            super().begin()
        lengths = {one.strip() for one in self.headers.get_all("content-length", [])}
        if self.headers.defects or len(lengths) > 1 or not all(map(str.isdecimal, lengths)):
            raise HTTPException("the head of its answer is damaged")


def line_to(where: SplitResult, trusted: ssl.SSLContext) -> HTTPConnection:
    """Returns a connection that is not made yet."""
    is_secure, host = where.scheme == "https", where.hostname or ""
    # Always with a port: otherwise the end of an IPv6 address is taken for one.
    port = where.port or (443 if is_secure else 80)
    line = HTTPSConnection(host, port, context=trusted) if is_secure else HTTPConnection(host, port)
    line.response_class = _Answer
    return line


def body_of(answer: HTTPResponse, most: int) -> bytes:
    """Of a body that is larger than ``most`` it returns the beginning, which is larger, too."""
    body = bytearray()
    while len(body) <= most and (part := answer.read(PART)):
        body += part
    if answer.length and len(body) <= most:
        raise IncompleteRead(bytes(body), answer.length)
    return bytes(body)


def trusted(url: str) -> ssl.SSLContext:
    """Returns the certificates of the machine, or those that the environment names. Reading them takes 30 ms, so an address
    without TLS gets none."""
    if url.lower().startswith("http://"):
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    file, folder = (os.environ.get(name) or None for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"))
    if file or folder:
        return ssl.create_default_context(cafile=file, capath=folder)
    import truststore  # few addresses of a machine itself have TLS

    return truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def reason(error: BaseException) -> str:
    """Says in a few words why a request failed: the innermost error knows best. What a server has sent may be in it."""
    chain: list[BaseException] = []
    inner: BaseException | None = error
    while inner is not None and inner not in chain:
        chain.append(inner)
        inner = inner.__cause__ or inner.__context__
    for one in chain:
        if isinstance(one, TimeoutError):
            return "it did not answer in time"
        if isinstance(one, ssl.SSLCertVerificationError):
            return f"its TLS certificate is not valid here: {one.verify_message}"
        if isinstance(one, IncompleteRead):
            return "its answer ended too early"
    for one in reversed(chain):
        if isinstance(one, OSError) and one.strerror:
            return one.strerror
    return plain(str(chain[-1])) or type(error).__name__
