"""Fetching a URL that a user typed, with limits for time, size, redirects and addresses."""

import asyncio
import re
import socket
import ssl
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING
from urllib.parse import quote, urljoin, urlsplit

from yarl import URL

from postern.core.address import NOBODY, Allowlist
from postern.core.fetched import Fetched
from postern.core.names import is_header_name
from postern.outbound.guard import (
    FetchFailed,
    FetchRequest,
    Guard,
    Heard,
    Resolve,
    redirect_in,
    system_resolve,
)

if TYPE_CHECKING:
    from postern.outbound.client import Client

USER_AGENT = "Postern"

_OWN_HEADERS = {"User-Agent": USER_AGENT, "Accept": "*/*", "Accept-Encoding": "gzip"}
SAFE_IN_URL = "%/:@!$&'()*+,;=~?[]"


class Fetcher:
    """Sends requests to allowed addresses. It keeps connections and nothing else."""

    def __init__(
        self,
        *,
        allowed_ranges: Allowlist = NOBODY,
        tls: ssl.SSLContext | None = None,
        resolve: Resolve = system_resolve,
    ) -> None:
        """``tls``: in place of the certificates that the system trusts."""
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
        heard: Heard | None = None,
    ) -> Fetched:
        """The answer, whatever its status. Raises ``FetchFailed``, with the status if that came. ``timeout`` is for everything,
        redirects and a slow body included. ``max_redirects``: None if a redirect is an answer like any other.
        ``heard`` tells meanwhile how far it came.

        Waiting for a free connection and connecting (five seconds at most) may take half of the time: the reason ``timeout``
        means that the request was sent.
        """
        request = FetchRequest(method, parse_url(url), headers or {}, content, max_bytes)
        client = self._client or await self._made()
        heard = heard or Heard()
        try:
            # A limit for each read would let a server that sends a byte now and then hold us for ever.
            async with asyncio.timeout(timeout):
                return await _follow(client, request, timeout / 2, max_redirects, heard)
        except TimeoutError as error:
            within = f"within {round(timeout, 1):g} seconds"
            if not heard.connected:  # a program that had no turn for so long finds both limits over at once
                raise FetchFailed("connection_failed", f"no connection {within}") from error
            detail = f"no complete answer {within}"
            raise FetchFailed("timeout", detail, heard.status) from error

    async def reach(self, url: str, timeout: float = 5.0) -> None:
        """Connects and hangs up. Raises ``FetchFailed`` if nobody listens there."""
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
        """Loads what the first request would wait for."""
        await self._made()

    async def _made(self) -> "Client":
        async with self._making:
            if self._client is None:
                make = await asyncio.to_thread(_prepared, self._guard, self._tls)
                self._client = make()
        return self._client


async def _follow(
    client: "Client", request: FetchRequest, send_within: float, redirects: int | None, heard: Heard
) -> Fetched:
    followed = 0
    while True:
        sent = replace(request, headers=_sent(request.headers))
        answer = await client.exchange(sent, send_within, redirects is not None, heard)
        leads_to = redirect_in(answer.status, answer.headers)
        if leads_to is None or redirects is None:
            return answer
        try:
            target = parse_url(leads_to, request.url)
        except FetchFailed as wrong:
            detail = f"the answer is a redirect, and to no URL: {wrong.detail}"
            raise FetchFailed(wrong.reason_code, detail) from wrong
        if followed == redirects:
            many = f"more than {redirects} redirects"
            one = f"the answer is a redirect to {_shown(target)}; redirects are not followed here"
            raise FetchFailed("too_many_redirects", many if redirects else one)
        followed += 1
        request = _redirected(request, answer.status, target)


def _redirected(request: FetchRequest, status: int, target: URL) -> FetchRequest:
    method, content, headers = request.method, request.content, request.headers
    if status == 303 or (status in (301, 302) and method == "POST"):
        method, content = ("HEAD" if method == "HEAD" else "GET"), None
        headers = {name: value for name, value in headers.items() if not name.lower().startswith("content-")}
    if target.origin() != request.url.origin():
        # The user gave the headers to one site. They stay away even if a later redirect comes back to it.
        headers = {}
        if content is not None:
            raise FetchFailed(
                "redirect_refused", f"the answer would send the request's body on to {_shown(target)}"
            )
    return FetchRequest(method, target, headers, content, request.max_bytes)


def _prepared(guard: Guard, tls: ssl.SSLContext | None) -> Callable[[], "Client"]:
    """Loads the library and the system's certificates, which takes a while."""
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
    """The user's headers, and ours that they do not replace."""
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
    """Raises ``FetchFailed``, which says what is wrong. Asked when a URL is configured, and again when it is used."""
    try:
        written = text.strip() if base is None else urljoin(str(base), text)
        url, parts = URL(written), urlsplit(written)
        host, port = url.host_subcomponent, url.explicit_port
        if url.scheme in ("http", "https") and host and port != 0 and not (url.user or url.password):
            # Path and query stay as written: with a decoded %2F a signature of the URL would be wrong.
            return URL.build(
                scheme=url.scheme,
                authority=_number(host) + (f":{port}" if port else ""),
                path=quote(parts.path, safe=SAFE_IN_URL) or "/",
                query_string=quote(parts.query, safe=SAFE_IN_URL),
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
    """An address written as one number, in octal or with parts left out becomes the usual four numbers."""
    if re.fullmatch(r"[0-9][0-9a-fx.]*", host):
        with suppress(OSError):
            return socket.inet_ntoa(socket.inet_aton(host))
    return host


def _shown(url: URL) -> str:
    """Without the query, which may hold a secret."""
    return f"{url.scheme}://{url.raw_authority}{url.raw_path}"[:200]
