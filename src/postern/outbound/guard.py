"""The addresses that the gateway may connect to.

A name is resolved once, all its addresses are judged, and the connection goes to one of these. There is no second look-up that a
name server could answer differently. The Host header and the name in TLS stay those of the URL.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from msgspec import Struct
from yarl import URL

from postern.core.address import Allowlist, closed
from postern.core.calls.call import Headers, header_values
from postern.core.problems import FetchTrouble

Reason = Literal[
    "address_not_allowed",
    "bad_request",
    "bad_response",
    "bad_url",
    "connection_failed",
    "name_not_found",
    "no_room",
    "redirect_refused",
    "timeout",
    "tls",
    "too_large",
    "too_many_redirects",
]

Resolve = Callable[[str, int], Awaitable[list[str]]]


class FetchFailed(FetchTrouble):
    """A request that failed, with the kind of reason."""

    def __init__(self, reason_code: Reason, detail: str, status: int | None = None) -> None:
        super().__init__(detail, status)
        self.args = (f"{reason_code}: {detail}",)
        self.reason_code = reason_code


@dataclass(frozen=True)
class FetchRequest:
    """A request, and how large its answer may be."""

    method: str
    url: URL
    headers: Mapping[str, str] = field(repr=False)
    content: bytes | None = field(repr=False)
    max_bytes: int


def redirect_in(status: int, headers: Headers) -> str | None:
    """The target of a redirect; None for every other answer."""
    targets = header_values(headers, b"location") if status in (301, 302, 303, 307, 308) else []
    return targets[0].decode("latin-1") if targets else None


class Heard(Struct):
    """How far an exchange has come: what it asks may have reached the other side once it has ``connected``."""

    connected: bool = False
    status: int | None = None


async def system_resolve(host: str, port: int) -> list[str]:
    """All addresses of the name. An address in decimal, octal or shortened form becomes the usual one here."""
    answers = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(answer[4][0]) for answer in answers))


class Guard:
    """Allows public addresses, and the ranges that were opened on purpose."""

    def __init__(self, allowed_ranges: Allowlist, resolve: Resolve = system_resolve) -> None:
        self._allowed = allowed_ranges
        self._resolve = resolve

    async def addresses(self, host: str, port: int) -> list[str]:
        """The host's addresses. Raises ``FetchFailed`` unless the gateway may connect to all of them."""
        try:
            addresses = await self._resolve(host, port)
        except (OSError, UnicodeError) as error:
            if isinstance(error, socket.gaierror) and error.errno == socket.EAI_AGAIN:
                raise FetchFailed("name_not_found", f"no name server could say where {host} is") from error
            raise FetchFailed("name_not_found", f"{host} has no address") from error
        if not addresses:
            raise FetchFailed("name_not_found", f"{host} has no address")
        for address in addresses:
            # All of them: a name with public and private addresses is most likely an attack.
            self.judge(address, host)
        return addresses

    def judge(self, address: str, host: str | None = None) -> None:
        """Raises ``FetchFailed`` if the gateway must not connect to this address (of this host)."""
        if (reason := closed(address, self._allowed)) is not None:
            where = f"{host} is {address}, which" if host and host != address else address
            raise FetchFailed(
                "address_not_allowed", f"{where} is {reason}; the gateway does not connect there"
            )
