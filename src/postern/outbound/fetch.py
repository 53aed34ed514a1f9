"""Fetching a URL that a user typed: bounded in time, size, redirects, and in where it may lead."""

import asyncio
import re
import socket
import ssl
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import lru_cache, partial
from typing import TYPE_CHECKING
from urllib.parse import quote, urljoin, urlsplit

from yarl import URL

from postern.core.address import NOBODY, Allowlist
from postern.core.calls.call import Headers, header_values
from postern.core.names import is_header_name
from postern.outbound.guard import FetchFailed, Guard, Heard, Resolve, system_resolve

if TYPE_CHECKING:
    from postern.outbound.client import Client

USER_AGENT = "Postern"

_OWN_HEADERS = {"User-Agent": USER_AGENT, "Accept": "*/*", "Accept-Encoding": "gzip"}
_SAFE = "%/:@!$&'()*+,;=~?[]"


@dataclass(frozen=True, slots=True)
class FetchedAnswer:
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
        tls: ssl.SSLContext | None = None,
        resolve: Resolve = system_resolve,
    ) -> None:
        """``tls`` replaces what the system trusts."""
        self._guard = Guard(allowed_ranges, resolve)
        self._tls = tls
        self._client: Client | None = None
        self._making = asyncio.Lock()

    async def fetch(
        self,
        url: str,
        *,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
        timeout: float = 10.0,
        max_bytes: int = 1 << 20,
        max_redirects: int | None = 5,
    ) -> FetchedAnswer:
        """The answer, or ``FetchFailed`` with its status if that came. ``timeout`` is for everything together, redirects and a slow body
        included. ``max_redirects``: None where a redirect is an answer like any other.

        Waiting for a connection that is free, and connecting, which has at most five seconds, have half of it: ``timeout`` as
        the reason then means that the request has gone out.
        """
        target = parse_url(url)
        client = self._client or await self._made()
        heard = Heard()
        try:
            # A time-out per read would let a server that sends a byte now and then hold us for ever.
            async with asyncio.timeout(timeout):
                return await self._follow(
                    client,
                    target,
                    method,
                    headers or {},
                    content,
                    timeout / 2,
                    max_bytes,
                    max_redirects,
                    heard,
                )
        except TimeoutError as error:
            detail = f"no complete answer within {timeout:g} seconds"
            raise FetchFailed("timeout", detail, heard.status) from error

    async def reach(self, url: str, timeout: float = 5.0) -> None:
        """Connect and hang up: says whether somebody listens there without asking them anything."""
        target = parse_url(url)
        host, port = str(target.raw_host), target.port or 0
        try:
            async with asyncio.timeout(timeout):
                await _first_to_answer(await self._guard.addresses(host, port), port)
        except OSError as error:  # time-outs included
            raise FetchFailed("connection_failed", f"nobody answers at {_shown(target)}") from error

    async def aclose(self) -> None:
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def prepare(self) -> None:
        """Loads and makes what the first request would wait for."""
        await self._made()

    async def _made(self) -> "Client":
        async with self._making:
            if self._client is None:
                make = await asyncio.to_thread(_prepared, self._guard, self._tls)
                self._client = make()
        return self._client

    async def _follow(
        self,
        client: "Client",
        url: URL,
        method: str,
        headers: Mapping[str, str],
        content: bytes | None,
        send_within: float,
        max_bytes: int,
        redirects: int | None,
        heard: Heard,
    ) -> FetchedAnswer:
        left = redirects or 0
        while True:
            answer = await client.exchange(
                method, url, _sent(headers), content, send_within, max_bytes, redirects is not None, heard
            )
            if answer.leads_to is None or redirects is None:
                return FetchedAnswer(answer.status, answer.headers, answer.body, str(url))
            try:
                target = parse_url(answer.leads_to.decode("latin-1"), url)
            except FetchFailed as wrong:
                raise FetchFailed(
                    wrong.reason_code, f"the answer is a redirect, and to no URL: {wrong.detail}"
                ) from wrong
            if left == 0:
                raise FetchFailed(
                    "too_many_redirects",
                    f"more than {redirects} redirects"
                    if redirects
                    else f"the answer is a redirect to {_shown(target)}; redirects are not followed here",
                )
            left -= 1
            if answer.status == 303 or (answer.status in (301, 302) and method == "POST"):
                method, content = ("HEAD" if method == "HEAD" else "GET"), None
                headers = {
                    name: value for name, value in headers.items() if not name.lower().startswith("content-")
                }
            if target.origin() != url.origin():
                # The user gave these to one site, not to wherever it points. They stay off even if a later
                # redirect comes back.
                headers = {}
                if content is not None:
                    raise FetchFailed(
                        "redirect_refused", f"the answer would send the request's body on to {_shown(target)}"
                    )
            url = target


def _prepared(guard: Guard, tls: ssl.SSLContext | None) -> Callable[[], "Client"]:
    """What takes a while: the library, and reading the certificates that the system trusts."""
    from postern.outbound.client import Client, system_tls

    return partial(Client, guard, tls or system_tls())


async def _first_to_answer(addresses: list[str], port: int) -> None:
    failure = OSError()
    for address in addresses:
        try:
            _, writer = await asyncio.open_connection(address, port)
        except OSError as error:
            failure = error
        else:
            writer.close()
            return
    raise failure


def _sent(headers: Mapping[str, str]) -> dict[str, str]:
    """With ours, where the user has none of that name."""
    given = {name.lower() for name in headers}
    sent = {name: value for name, value in _OWN_HEADERS.items() if name.lower() not in given}
    for name, value in headers.items():
        if not (is_header_name(name) and value.isascii()) or (
            not value.isprintable() and not value.replace("\t", " ").isprintable()
        ):
            raise FetchFailed("bad_request", "a header holds characters that HTTP does not carry")
        sent[name] = value
    return sent


@lru_cache(maxsize=256)  # the same few again and again
def parse_url(text: str, base: URL | None = None) -> URL:
    """The URL, or ``FetchFailed`` with what is wrong with it: asked when it is configured, and again when it
    is used."""
    try:
        written = text.strip() if base is None else urljoin(str(base), text)
        url, parts = URL(written), urlsplit(written)
        host, port = url.host_subcomponent, url.explicit_port
        if url.scheme in ("http", "https") and host and port != 0 and not (url.user or url.password):
            # Path and query go out as they were written: a decoded %2F is another URL to whoever signed it.
            return URL.build(
                scheme=url.scheme,
                authority=_number(host) + (f":{port}" if port else ""),
                path=quote(parts.path, safe=_SAFE) or "/",
                query_string=quote(parts.query, safe=_SAFE),
                encoded=True,
            )
    except (UnicodeError, ValueError, TypeError) as error:
        raise FetchFailed("bad_url", "this is not a URL") from error
    if url.scheme not in ("http", "https"):
        raise FetchFailed("bad_url", "the URL must begin with http:// or https://")
    if not host or port == 0:
        raise FetchFailed("bad_url", "the URL names no host")
    raise FetchFailed("bad_url", "a URL must not carry a username or password; use a header")


def _number(host: str) -> str:
    """An address that is written as one number, in octal or with parts left out, in the way that everybody reads."""
    if re.fullmatch(r"[0-9][0-9a-fx.]*", host):
        with suppress(OSError):
            return socket.inet_ntoa(socket.inet_aton(host))
    return host


def _shown(url: URL) -> str:
    """Without its query, which may hold what nobody should read in a log."""
    return f"{url.scheme}://{url.raw_authority}{url.raw_path}"[:200]
