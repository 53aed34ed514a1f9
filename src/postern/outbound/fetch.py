"""Fetching a URL that a user typed: bounded in time, size, redirects, and in where it may lead."""

import asyncio
import re
import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime

import httpcore2
import httpx2

from postern.core.address import NOBODY, Allowlist
from postern.core.calls.call import Headers, header_values
from postern.outbound.guard import (
    FetchFailed,
    GuardedNetwork,
    Reason,
    Resolve,
    guarded_transport,
    system_resolve,
)

USER_AGENT = "Postern"
LARGEST_HEADERS = 32 * 1024
LONGEST_CONNECT = 5.0

_OWN_HEADERS = {"User-Agent": USER_AGENT, "Accept": "*/*", "Accept-Encoding": "gzip"}
_REDIRECTS = {301, 302, 303, 307, 308}


@dataclass(frozen=True, slots=True)
class Fetched:
    """What came back, whatever its status. ``url`` is where the last redirect led; header names are
    lower-case."""

    status: int
    headers: Headers = field(repr=False)
    body: bytes = field(repr=False)
    url: str = field(repr=False)

    def header(self, name: str) -> str | None:
        values = header_values(self.headers, name.lower().encode())
        return values[0].decode("latin-1") if values else None

    def retry_after(self, now: float) -> float | None:
        """The seconds to wait that the answer asks for, as a number or as a date."""
        text = (self.header("retry-after") or "").strip()
        if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", text):  # Shopify writes 2.0
            return float(text)
        try:
            return max(parsedate_to_datetime(text).timestamp() - now, 0.0)
        except (ValueError, TypeError, OverflowError):
            return None


class Fetcher:
    """Sends requests to addresses that may be reached. Holds connections, never cookies, credentials or
    anything else."""

    def __init__(
        self,
        *,
        allowed_ranges: Allowlist = NOBODY,
        tls: ssl.SSLContext | bool = True,
        resolve: Resolve = system_resolve,
    ) -> None:
        self._network = GuardedNetwork(allowed_ranges, resolve)
        # The bare transport, not a client: a client would remember cookies, read the environment and follow
        # redirects by itself.
        self._transport = guarded_transport(self._network, tls)

    async def fetch(
        self,
        url: str,
        *,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
        timeout: float = 10.0,
        max_bytes: int = 1 << 20,
        max_redirects: int = 5,
    ) -> Fetched:
        """The answer, or ``FetchFailed``. ``timeout`` is for everything together, redirects and a slow body
        included.

        Connecting has half of it, at most five seconds: ``timeout`` as the reason then means that the request
        has gone out.
        """
        try:
            # A time-out per read would let a server that sends a byte now and then hold us for ever.
            async with asyncio.timeout(timeout):
                return await self._follow(
                    parse_url(url), method, headers or {}, content, timeout, max_bytes, max_redirects
                )
        except TimeoutError as error:
            raise FetchFailed("timeout", f"no complete answer within {timeout:g} seconds") from error

    async def reach(self, url: str, timeout: float = 5.0) -> None:
        """Connect and hang up: says whether somebody listens there without asking them anything."""
        target = parse_url(url)
        try:
            stream = await self._network.connect_tcp(
                target.raw_host.decode("ascii"), _origin(target)[2], timeout
            )
        except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
            raise FetchFailed("connection_failed", f"nobody answers at {_shown(target)}") from error
        await stream.aclose()

    async def aclose(self) -> None:
        await self._transport.aclose()

    async def _follow(
        self,
        url: httpx2.URL,
        method: str,
        headers: Mapping[str, str],
        content: bytes | None,
        timeout: float,
        max_bytes: int,
        redirects: int,
    ) -> Fetched:
        left = redirects
        while True:
            answer = await self._send(_request(url, method, headers, content, timeout), max_bytes)
            if isinstance(answer, Fetched):
                return answer
            if left == 0:
                raise FetchFailed(
                    "too_many_redirects",
                    f"more than {redirects} redirects"
                    if redirects
                    else f"the answer is a redirect to {_shown(answer.target)}; redirects are not followed here",
                )
            left -= 1
            target = answer.target
            if answer.status == 303 or (answer.status in (301, 302) and method == "POST"):
                method, content = ("HEAD" if method == "HEAD" else "GET"), None
                headers = {
                    name: value for name, value in headers.items() if not name.lower().startswith("content-")
                }
            if _origin(target) != _origin(url):
                # The user gave these to one site, not to wherever it points. They stay off even if a later
                # redirect comes back.
                headers = {}
                if content is not None:
                    raise FetchFailed(
                        "redirect_refused", f"the answer would send the request's body on to {_shown(target)}"
                    )
            url = target

    async def _send(self, request: httpx2.Request, max_bytes: int) -> "Fetched | _Redirect":
        try:
            response = await self._transport.handle_async_request(request)
        except httpx2.HTTPError as error:
            raise _explained(error) from error
        try:
            return await _received(request.url, response, max_bytes)
        except httpx2.HTTPError as error:
            raise _explained(error) from error
        finally:
            await response.aclose()


@dataclass(frozen=True, slots=True)
class _Redirect:
    status: int
    target: httpx2.URL


async def _received(url: httpx2.URL, response: httpx2.Response, max_bytes: int) -> "Fetched | _Redirect":
    headers = tuple((name.lower(), value) for name, value in response.headers.raw)
    if sum(len(name) + len(value) for name, value in headers) > LARGEST_HEADERS:
        raise FetchFailed(
            "too_large", f"the answer's headers are larger than {LARGEST_HEADERS} bytes", response.status_code
        )
    location = header_values(headers, b"location")
    if response.status_code in _REDIRECTS and location:
        return _Redirect(response.status_code, parse_url(location[0].decode("latin-1"), url))
    if len(response.headers.get_list("content-encoding", split_commas=True)) > 1:
        # Nested compression multiplies, and would be undone before a byte is counted.
        raise FetchFailed("bad_response", "the answer is compressed more than once")
    body = bytearray()
    async for part in response.aiter_bytes():
        body += part
        if len(body) > max_bytes:
            raise FetchFailed(
                "too_large", f"the answer is larger than {max_bytes} bytes", response.status_code
            )
    return Fetched(response.status_code, headers, bytes(body), str(url))


def _request(
    url: httpx2.URL, method: str, headers: Mapping[str, str], content: bytes | None, timeout: float
) -> httpx2.Request:
    given = {name.lower() for name in headers}
    sent = [(name, value) for name, value in _OWN_HEADERS.items() if name.lower() not in given] + list(
        headers.items()
    )
    step = {"connect": min(timeout / 2, LONGEST_CONNECT), "read": timeout, "write": timeout, "pool": timeout}
    try:
        return httpx2.Request(method, url, headers=sent, content=content, extensions={"timeout": step})
    except (UnicodeError, ValueError, TypeError) as error:
        raise FetchFailed("bad_request", "a header holds characters that HTTP does not carry") from error


def parse_url(text: str, base: httpx2.URL | None = None) -> httpx2.URL:
    """The URL, or ``FetchFailed`` with what is wrong with it: asked when it is configured, and again when it
    is used."""
    try:
        url = httpx2.URL(text.strip()) if base is None else base.join(text)
        port = url.port
    except (httpx2.InvalidURL, UnicodeError, ValueError, TypeError) as error:
        raise FetchFailed("bad_url", "this is not a URL") from error
    if url.scheme not in ("http", "https"):
        raise FetchFailed("bad_url", "the URL must begin with http:// or https://")
    if not url.host or (port is not None and not 0 < port < 65536):
        raise FetchFailed("bad_url", "the URL names no host")
    if url.userinfo:
        raise FetchFailed("bad_url", "a URL must not carry a username or password; use a header")
    return url


def _origin(url: httpx2.URL) -> tuple[str, str, int]:
    return url.scheme, url.host, url.port or {"http": 80, "https": 443}[url.scheme]


def _shown(url: httpx2.URL) -> str:
    """Without its query, which may hold what nobody should read in a log."""
    return f"{url.scheme}://{url.netloc.decode('latin-1')}{url.path}"[:200]


def _explained(error: httpx2.HTTPError) -> FetchFailed:
    if any(isinstance(cause, ssl.SSLError) for cause in _causes(error)):
        return FetchFailed("tls", f"no secure connection: {error}")
    explained: list[tuple[type[httpx2.HTTPError], Reason, str]] = [
        (httpx2.ConnectTimeout, "connection_failed", "nobody answered the attempt to connect"),
        (httpx2.PoolTimeout, "connection_failed", "too many requests are being sent at once"),
        (httpx2.TimeoutException, "timeout", "no complete answer in time"),
        (httpx2.LocalProtocolError, "bad_request", f"the request cannot be sent: {error}"),
        (httpx2.RemoteProtocolError, "bad_response", f"the answer is not valid HTTP: {error}"),
        (httpx2.DecodingError, "bad_response", f"the answer cannot be decompressed: {error}"),
        (httpx2.UnsupportedProtocol, "bad_url", "the URL must begin with http:// or https://"),
    ]
    for kind, reason, detail in explained:
        if isinstance(error, kind):
            return FetchFailed(reason, detail)
    return FetchFailed("connection_failed", f"no connection, or it broke off: {error}")


def _causes(error: BaseException) -> Iterable[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__
