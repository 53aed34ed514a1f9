"""One HTTP exchange by aiohttp, over a connection that the guard allows.

This module is loaded with the first request: many gateways send none.
"""

import asyncio
import os
import socket
import ssl
import sys
import zlib
from contextvars import ContextVar
from functools import cache, lru_cache
from io import BytesIO
from typing import Any
from weakref import WeakValueDictionary

import aiohttp
import truststore
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.http_exceptions import HttpProcessingError

from postern.core.calls.call import Headers, header_values
from postern.core.fetched import Fetched
from postern.outbound.guard import FetchFailed, FetchRequest, Guard, Heard, Reason, redirect_in

MOST_CONNECTIONS = 200
LONGEST_CONNECT = 5.0
SHORTEST_CONNECT = 0.1
MADE_AT_ONCE = 8
"""Attempts to connect to one host at the same time."""
LARGEST_HEADERS = 32 * 1024
"""Bytes: for all headers of an answer together, and in the parser for each."""
MOST_HEADERS = 200
_NO_TYPE = ("Content-Type",)
"""The header that aiohttp would add to a body by itself."""
PIECE = 64 * 1024
_CONNECTS: ContextVar[Heard] = ContextVar("connects")

_CERTIFICATES = (  # further places where systems keep them
    "/etc/ssl/cert.pem",
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/cert.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem",
)


class Client:
    """It keeps connections, but no cookies and credentials, and takes no proxy from the environment. Made in the event loop."""

    def __init__(self, guard: Guard, tls: ssl.SSLContext) -> None:
        self._room = asyncio.Semaphore(MOST_CONNECTIONS)
        self._session = aiohttp.ClientSession(
            connector=_Connector(
                limit=0,
                resolver=_GuardedResolver(guard),
                use_dns_cache=False,
                socket_factory=_guarded_sockets(guard),
                ssl=tls,
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
            auto_decompress=False,
            max_line_size=LARGEST_HEADERS,
            max_field_size=LARGEST_HEADERS,
            max_headers=MOST_HEADERS,
        )

    async def exchange(
        self, request: FetchRequest, send_within: float, may_follow: bool, heard: Heard
    ) -> Fetched:
        """The answer, decompressed. The caller limits the time for all of it, and finds in ``heard`` how far it came.
        ``may_follow``: a redirect is an answer without its body."""
        heard.connected, heard.status = False, None
        _CONNECTS.set(heard)
        connect_within = min(await self._find_room(send_within), LONGEST_CONNECT)
        content = request.content
        try:
            async with self._session.request(
                request.method,
                request.url,
                headers=request.headers,
                # A large body in pieces: other requests wait while one is written.
                data=content if content is None or len(content) <= PIECE else BytesIO(content),
                skip_auto_headers=() if content is None or "Content-Type" in request.headers else _NO_TYPE,
                allow_redirects=False,
                timeout=_time_to_connect(connect_within),
            ) as response:
                heard.status = response.status
                return await _received(response, request.max_bytes, may_follow)
        except FetchFailed as failed:
            failed.status = heard.status
            raise
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise _explained(error, heard.status) from error
        finally:
            self._room.release()

    async def _find_room(self, within: float) -> float:
        """Waits for a free connection, and returns the seconds that are left."""
        clock = asyncio.get_running_loop().time
        until = clock() + within
        try:
            async with asyncio.timeout(within):
                await self._room.acquire()
        except TimeoutError as error:
            detail = f"all {MOST_CONNECTIONS} connections that the gateway makes at once are in use"
            raise FetchFailed("no_room", detail) from error
        return max(round(until - clock(), 1), SHORTEST_CONNECT)

    async def aclose(self) -> None:
        await self._session.close()


class _Connector(aiohttp.TCPConnector):
    """Makes few connections to a host at a time. A server's queue of connections is short (Python's own has 5 places), and a client
    that finds it full tries again only after seconds: hundreds of attempts at once would take longer than one by one."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._gates: WeakValueDictionary[tuple[str | None, int | None], asyncio.Semaphore] = (
            WeakValueDictionary()
        )

    async def connect(self, req: Any, traces: Any, timeout: Any) -> Any:
        connection = await super().connect(req, traces, timeout)
        _CONNECTS.get().connected = True
        return connection

    async def _create_connection(self, req: Any, traces: Any, timeout: Any) -> Any:
        where = (req.url.raw_host, req.url.port)
        gate = self._gates.get(where)
        if gate is None:
            gate = self._gates[where] = asyncio.Semaphore(MADE_AT_ONCE)
        async with gate:
            return await super()._create_connection(req, traces, timeout)


class _GuardedResolver(AbstractResolver):
    """Resolves names. A numeric address does not come here: it is judged when the socket is made."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        return [
            {
                "hostname": host,
                "host": address,
                "port": port,
                "family": socket.AF_INET6 if ":" in address else socket.AF_INET,
                "proto": 0,
                "flags": socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            }
            for address in await self._guard.addresses(host, port)
        ]

    async def close(self) -> None:
        return None


def _guarded_sockets(guard: Guard) -> Any:
    """Every connection begins here, with the address that it goes to."""

    def make(where: tuple[Any, ...]) -> socket.socket:
        family, kind, protocol, _, address = where
        guard.judge(address[0])
        return socket.socket(family, kind, protocol)

    return make


def trusted_by_system() -> ssl.SSLContext:
    """Trusts what the system trusts, whatever the environment says (``SSL_CERT_FILE``)."""
    if sys.platform in ("darwin", "win32"):
        return truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # The compiled-in places: ``load_default_certs`` would follow the environment.
    paths = ssl.get_default_verify_paths()
    file = next(filter(os.path.isfile, (paths.openssl_cafile, *_CERTIFICATES)), None)
    folder = paths.openssl_capath if os.path.isdir(paths.openssl_capath) else None
    if file or folder:
        context.load_verify_locations(file, folder)
    return context


@cache
def system_tls() -> ssl.SSLContext:
    context = trusted_by_system()
    context.set_alpn_protocols(["http/1.1"])
    return context


@lru_cache(maxsize=64)
def _time_to_connect(seconds: float) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=None, connect=seconds)


async def _received(response: aiohttp.ClientResponse, max_bytes: int, may_follow: bool) -> Fetched:
    headers = tuple((name.lower(), value) for name, value in response.raw_headers)
    if sum(len(name) + len(value) for name, value in headers) > LARGEST_HEADERS:
        raise FetchFailed("too_large", f"the answer's headers are larger than {LARGEST_HEADERS} bytes")
    if may_follow and redirect_in(response.status, headers) is not None:
        return Fetched(response.status, headers, b"")
    body = bytearray()
    decompressor = _decompressor(headers)
    async for part in response.content.iter_any():
        try:
            # One byte more than there is room for, at most: a megabyte of zeros is a thousand times smaller when compressed.
            body += part if decompressor is None else decompressor.decompress(part, max_bytes - len(body) + 1)
        except zlib.error as error:
            raise FetchFailed("bad_response", f"the answer cannot be decompressed: {error}") from error
        if len(body) > max_bytes:
            raise FetchFailed("too_large", f"the answer is larger than {max_bytes} bytes")
    if decompressor is not None and not decompressor.eof and (body or decompressor.unconsumed_tail):
        raise FetchFailed("bad_response", "the answer cannot be decompressed: it breaks off")
    return Fetched(response.status, headers, bytes(body))


def _decompressor(headers: Headers) -> "zlib._Decompress | None":
    named = b",".join(header_values(headers, b"content-encoding")).decode("latin-1").lower().split(",")
    codings = [coding for name in named if (coding := name.strip()) not in ("", "identity")]
    if not codings:
        return None
    if len(codings) > 1:
        # Nested compression multiplies.
        raise FetchFailed("bad_response", "the answer is compressed more than once")
    if codings[0] not in ("gzip", "x-gzip", "deflate"):
        raise FetchFailed("bad_response", "the answer is compressed in a way that was not asked for")
    return zlib.decompressobj(zlib.MAX_WBITS | 32)  # it detects which of the two it is


def _explained(error: Exception, status: int | None) -> FetchFailed:
    explained: list[tuple[type[Exception] | tuple[type[Exception], ...], Reason, str]] = [
        ((aiohttp.ClientSSLError, ssl.SSLError), "tls", f"no secure connection: {_innermost(error)}"),
        (aiohttp.ServerTimeoutError, "connection_failed", "nobody answered the attempt to connect"),
        (aiohttp.InvalidURL, "bad_url", "this is not a URL"),
        (aiohttp.ServerDisconnectedError, "bad_response", "the connection was closed before an answer came"),
        (
            aiohttp.ClientPayloadError,
            "bad_response",
            "the answer is not valid HTTP: its body is not what its headers say",
        ),
        (aiohttp.ClientResponseError, "bad_response", f"the answer is not valid HTTP: {_innermost(error)}"),
        (ValueError, "bad_request", f"the request cannot be sent: {error}"),
    ]
    for kind, reason, detail in explained:
        if isinstance(error, kind):
            return FetchFailed(reason, detail, status)
    return FetchFailed("connection_failed", f"no connection, or it broke off: {_innermost(error)}", status)


def _innermost(error: BaseException) -> str:
    """The words of the first error: aiohttp raises its own from it."""
    while error.__cause__ is not None:
        error = error.__cause__
    words = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    if isinstance(error, HttpProcessingError):
        words = error.message  # its text begins with a status that the server did not send
    return " ".join(words.split())[:200] or type(error).__name__
