"""One HTTP exchange over a guarded connection: aiohttp, which is given where it may connect and remembers nothing.

Loaded with the first request, for many gateways send none.
"""

import asyncio
import os
import socket
import ssl
import sys
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from io import BytesIO
from typing import Any
from weakref import WeakValueDictionary

import aiohttp
import truststore
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.http_exceptions import HttpProcessingError
from yarl import URL

from postern.core.calls.call import Headers, header_values
from postern.outbound.guard import FetchFailed, Guard, Heard, Reason

MOST_CONNECTIONS = 200
LONGEST_CONNECT = 5.0
SHORTEST_CONNECT = 0.1
MADE_AT_ONCE = 8
"""Connections to one host."""
LARGEST_HEADERS = 32 * 1024
"""Of an answer, all together; the parser itself takes no single one of more than that."""
MOST_HEADERS = 200
_NO_TYPE = ("Content-Type",)
"""What aiohttp would say of a body by itself."""
PIECE = 64 * 1024

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_CERTIFICATES = (  # where a system may have them besides
    "/etc/ssl/cert.pem",
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/cert.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem",
)


@dataclass(frozen=True, slots=True)
class Exchanged:
    status: int
    headers: Headers = field(repr=False)
    body: bytes = field(repr=False)
    leads_to: bytes | None = None
    """Where it redirects to, for those who follow it; its body has not been read then."""


class Client:
    """Connections that are kept and used again; never cookies, credentials, proxies or anything else from the
    environment. To be made where the event loop runs."""

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
        self,
        method: str,
        url: URL,
        headers: Mapping[str, str],
        content: bytes | None,
        send_within: float,
        max_bytes: int,
        may_follow: bool,
        heard: Heard,
    ) -> Exchanged:
        """The answer, a redirect too, unfolded where it was compressed. Whoever asks sets the time for all of it, and
        sees in ``heard`` how far it came. ``may_follow``: the body of a redirect is not wanted."""
        heard.status = None
        connect_within = min(await self._find_room(send_within), LONGEST_CONNECT)
        try:
            async with self._session.request(
                method,
                url,
                headers=headers,
                # In pieces where it is large: others wait while one is written.
                data=content if content is None or len(content) <= PIECE else BytesIO(content),
                skip_auto_headers=() if content is None or "Content-Type" in headers else _NO_TYPE,
                allow_redirects=False,
                timeout=_time_to_connect(connect_within),
            ) as response:
                heard.status = response.status
                return await _received(response, max_bytes, may_follow)
        except FetchFailed as failed:
            failed.status = heard.status
            raise
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise _explained(error, heard.status) from error
        finally:
            self._room.release()

    async def _find_room(self, within: float) -> float:
        """The seconds that are left of these."""
        if not self._room.locked():
            await self._room.acquire()
            return within
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
    """A server has room for few connections that it has not taken yet (Python's own for 5). Who finds none tries again
    after seconds, so hundreds of starts at the same moment would wait for longer than if they came one by one."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._gates: WeakValueDictionary[tuple[str | None, int | None], asyncio.Semaphore] = (
            WeakValueDictionary()
        )

    async def _create_connection(self, req: Any, traces: Any, timeout: Any) -> Any:
        where = (req.url.raw_host, req.url.port)
        gate = self._gates.get(where)
        if gate is None:
            gate = self._gates[where] = asyncio.Semaphore(MADE_AT_ONCE)
        async with gate:
            return await super()._create_connection(req, traces, timeout)


class _GuardedResolver(AbstractResolver):
    """For names. aiohttp takes numbers as they are: they are judged where the socket is made."""

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
    """Every connection begins here, with the number that it goes to."""

    def make(where: tuple[Any, ...]) -> socket.socket:
        family, kind, protocol, _, address = where
        guard.judge(address[0])
        return socket.socket(family, kind, protocol)

    return make


def trusted_by_system() -> ssl.SSLContext:
    """What the system trusts, whatever the environment says (``SSL_CERT_FILE``)."""
    if sys.platform in ("darwin", "win32"):
        return truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # The places that were compiled in: asking for the default ones would ask the environment.
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


async def _received(response: aiohttp.ClientResponse, max_bytes: int, may_follow: bool) -> Exchanged:
    headers = tuple((name.lower(), value) for name, value in response.raw_headers)
    if sum(len(name) + len(value) for name, value in headers) > LARGEST_HEADERS:
        raise FetchFailed("too_large", f"the answer's headers are larger than {LARGEST_HEADERS} bytes")
    location = header_values(headers, b"location")
    if response.status in _REDIRECTS and location and may_follow:
        return Exchanged(response.status, headers, b"", location[0])
    body = bytearray()
    unfolded = _unfolded(headers)
    async for part in response.content.iter_any():
        body += part if unfolded is None else _unfold(unfolded, part, max_bytes - len(body))
        if len(body) > max_bytes:
            raise FetchFailed("too_large", f"the answer is larger than {max_bytes} bytes")
    if unfolded is not None and not unfolded.eof and (body or unfolded.unconsumed_tail):
        raise FetchFailed("bad_response", "the answer cannot be decompressed: it breaks off")
    return Exchanged(response.status, headers, bytes(body))


def _unfolded(headers: Headers) -> "zlib._Decompress | None":
    """What unfolds the body, or None where there is nothing to unfold."""
    named = b",".join(header_values(headers, b"content-encoding")).decode("latin-1").lower().split(",")
    codings = [coding for name in named if (coding := name.strip()) not in ("", "identity")]
    if not codings:
        return None
    if len(codings) > 1:
        # Nested compression multiplies.
        raise FetchFailed("bad_response", "the answer is compressed more than once")
    if codings[0] not in ("gzip", "x-gzip", "deflate"):
        raise FetchFailed("bad_response", "the answer is compressed in a way that was not asked for")
    return zlib.decompressobj(zlib.MAX_WBITS | 32)  # it sees itself which of the two it is


def _unfold(unfolding: "zlib._Decompress", part: bytes, room: int) -> bytes:
    """One byte more than there is room for at most: a megabyte of zeros is a thousand times smaller on its way."""
    try:
        return unfolding.decompress(part, room + 1)
    except zlib.error as error:
        raise FetchFailed("bad_response", f"the answer cannot be decompressed: {error}") from error


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
    """What went wrong first: aiohttp puts what was asked for around it."""
    while error.__cause__ is not None:
        error = error.__cause__
    words = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    if isinstance(error, HttpProcessingError):
        words = error.message  # as a text it begins with a status that nobody has sent
    return " ".join(words.split())[:200] or type(error).__name__
