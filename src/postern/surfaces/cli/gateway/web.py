"""Requests over the network, by the standard library: it loads quickly, and every command waits for it."""

import os
import select
import ssl
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection, IncompleteRead
from urllib.parse import SplitResult, unquote, urlsplit

from postern.surfaces.cli.run import end, plain

FAILURES = (OSError, HTTPException, ValueError)
"""Why a request has no answer. ``ValueError``: the address cannot be one, or a header cannot be sent."""

CONNECT_WITHIN = 10.0
PART = 64 * 1024
MOST_HEADS = 20
"""Before the answer a server may say that it is still to come: 100 Continue, 103 Early Hints."""


class Web:
    """One server. A connection is kept for the next request, because a new one with TLS reads all trusted certificates again.
    Nothing is sent twice, and redirects are not followed."""

    def __init__(self, url: str, by_proxy: bool) -> None:
        """``by_proxy``: through the proxy that the environment names, if it names one."""
        self._where, self._trusted = urlsplit(url), trusted(url)
        self._proxy = _proxy_to(self._where) if by_proxy else None
        self._kept: list[HTTPConnection] = []

    @contextmanager
    def ask(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None, within: float
    ) -> Iterator[HTTPResponse]:
        """Waits ``within`` seconds for each part of the answer. Raises one of ``FAILURES``. Threads may ask at the same time."""
        sent = dict(headers)
        if "user-agent" not in map(str.lower, headers):
            sent["User-Agent"] = "Postern"
        if self._proxy and self._where.scheme == "http":
            target = f"http://{self._where.netloc}{target}"
            sent |= _credentials(self._proxy)
        line, is_whole = self._idle() or line_to(self._where, self._trusted, self._proxy), False
        try:
            if line.sock is None:
                # An answer may take long, and a connection may not.
                line.timeout = min(within, CONNECT_WITHIN)
                line.connect()
            line.sock.settimeout(within)
            with suppress(ConnectionError):  # it may have answered before it had read all
                line.request(method, target, body, sent)
            with line.getresponse() as answer:
                yield answer
                is_whole = answer.isclosed() and line.sock is not None
        finally:
            if is_whole:
                self._kept.append(line)
            else:
                line.close()

    def _idle(self) -> HTTPConnection | None:
        while self._kept:
            line = self._kept.pop()
            if not select.select([line.sock], [], [], 0)[0]:
                return line
            line.close()  # the server has closed it, or says what nobody asked for
        return None

    def close(self) -> None:
        while self._kept:
            self._kept.pop().close()


class _Answer(HTTPResponse):
    """Refuses a damaged head. The standard library passes over what it does not understand, and all headers after it."""

    _heads = 0

    def _read_status(self) -> tuple[str, int, str]:
        self._heads += 1
        if self._heads > MOST_HEADS:
            raise HTTPException("it says again and again that its answer is still to come")
        status: tuple[str, int, str] = super()._read_status()  # type: ignore[misc] # it reads 100 over and over, too
        return status

    def begin(self) -> None:
        super().begin()
        while self.status < 200:  # like 103 Early Hints: the answer is still to come
            if self.status == 101:
                raise HTTPException("it begins to speak another protocol")
            self.headers = None  # type: ignore[assignment] # it has not begun
            super().begin()
        lengths = {length.strip() for length in self.headers.get_all("content-length", [])}
        if self.headers.defects or len(lengths) > 1 or not all(map(str.isdecimal, lengths)):
            raise HTTPException("the head of its answer is damaged")


def line_to(where: SplitResult, trusted: ssl.SSLContext, proxy: SplitResult | None = None) -> HTTPConnection:
    """Returns a connection that is not made yet."""
    is_secure, first = where.scheme == "https", proxy or where
    # Always with a port: otherwise the end of an IPv6 address is taken for one.
    host, port = first.hostname or "", first.port or (443 if first.scheme == "https" else 80)
    line = HTTPSConnection(host, port, context=trusted) if is_secure else HTTPConnection(host, port)
    if proxy and is_secure:
        line.set_tunnel(where.hostname or "", where.port or 443, _credentials(proxy))
    line.response_class = _Answer
    return line


def body_of(answer: HTTPResponse, most: int) -> bytes:
    """Returns the body; of one larger than ``most`` only a beginning, which is larger, too."""
    body = bytearray()
    while len(body) <= most and (part := answer.read(PART)):
        body += part
    if answer.length and len(body) <= most:
        raise IncompleteRead(bytes(body), answer.length)
    return bytes(body)


def _proxy_to(where: SplitResult) -> SplitResult | None:
    from urllib.request import getproxies, proxy_bypass  # most commands stay on their machine

    named = getproxies()
    url = named.get(where.scheme) or named.get("all")
    if not url or proxy_bypass(where.netloc) or proxy_bypass(where.hostname or ""):
        return None
    proxy = urlsplit(url if "://" in url else f"http://{url}")
    if proxy.scheme != "http":
        end(f"The environment names a proxy at {proxy.scheme}://, and commands use one at http:// only.")
    return proxy


def _credentials(proxy: SplitResult) -> dict[str, str]:
    if proxy.username is None:
        return {}
    pair = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return {"Proxy-Authorization": f"Basic {b64encode(pair.encode()).decode()}"}


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
    """Says in a few words why a request failed: the innermost error knows best. Words that a server has sent may be in it."""
    chain: list[BaseException] = []
    inner: BaseException | None = error
    while inner is not None and inner not in chain:
        chain.append(inner)
        inner = inner.__cause__ or inner.__context__
    for cause in chain:
        if isinstance(cause, TimeoutError):
            return "it did not answer in time"
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"its TLS certificate is not valid here: {cause.verify_message}"
        if isinstance(cause, IncompleteRead):
            return "its answer ended too early"
    for cause in reversed(chain):
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror
    return plain(str(chain[-1])) or type(error).__name__
