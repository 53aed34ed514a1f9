"""Connecting only where the gateway may go.

A name is resolved once, every address it resolves to is judged, and the connection is made to one of the
judged numbers. There is no second look-up for a name server to answer differently. Host header and TLS name
stay those of the URL.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Literal

from msgspec import Struct

from postern.core.address import Allowlist, closed
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
    """With the kind of what has gone wrong."""

    def __init__(self, reason_code: Reason, detail: str, status: int | None = None) -> None:
        super().__init__(detail, status)
        self.args = (f"{reason_code}: {detail}",)
        self.reason_code = reason_code


class Heard(Struct):
    """What has come of an answer so far."""

    status: int | None = None


async def system_resolve(host: str, port: int) -> list[str]:
    """Every address of the name. Decimal, octal and shortened forms of an address become the address here."""
    answers = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(answer[4][0]) for answer in answers))


class Guard:
    """Where the gateway may go: public addresses, and the ranges that were opened on purpose."""

    def __init__(self, allowed_ranges: Allowlist, resolve: Resolve = system_resolve) -> None:
        self._allowed = allowed_ranges
        self._resolve = resolve

    async def addresses(self, host: str, port: int) -> list[str]:
        """Where this host is; ``FetchFailed`` unless the gateway may go to all of that."""
        try:
            addresses = await self._resolve(host, port)
        except (OSError, UnicodeError) as error:
            if isinstance(error, socket.gaierror) and error.errno == socket.EAI_AGAIN:
                raise FetchFailed("name_not_found", f"no name server could say where {host} is") from error
            raise FetchFailed("name_not_found", f"{host} has no address") from error
        if not addresses:
            raise FetchFailed("name_not_found", f"{host} has no address")
        for address in addresses:
            # All of them, not only the one that would be used: a name with public and private addresses is most
            # likely an attack.
            self.judge(address, host)
        return addresses

    def judge(self, address: str, host: str | None = None) -> None:
        """``FetchFailed`` where the gateway must not connect to this address (of this host)."""
        if (reason := closed(address, self._allowed)) is not None:
            where = f"{host} is {address}, which" if host and host != address else address
            raise FetchFailed(
                "address_not_allowed", f"{where} is {reason}; the gateway does not connect there"
            )
