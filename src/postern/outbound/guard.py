"""Connecting only where the gateway may go.

A name is resolved once, every address it resolves to is judged, and the connection is made to one of the
judged numbers. There is no second look-up for a name server to answer differently. Host header and TLS name
stay those of the URL.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Literal

import httpcore2
import httpx2

from postern.core.address import Allowlist, closed

Reason = Literal[
    "address_not_allowed",
    "bad_request",
    "bad_response",
    "bad_url",
    "connection_failed",
    "name_not_found",
    "redirect_refused",
    "timeout",
    "tls",
    "too_large",
    "too_many_redirects",
]

Resolve = Callable[[str, int], Awaitable[list[str]]]


class FetchFailed(Exception):
    """No answer was received, and why. The detail is for the user who configured the URL."""

    def __init__(self, reason_code: Reason, detail: str, status: int | None = None) -> None:
        super().__init__(f"{reason_code}: {detail}")
        self.reason_code = reason_code
        self.detail = detail
        self.status = status
        """The answer's status where one had already been received."""


async def system_resolve(host: str, port: int) -> list[str]:
    """Every address of the name. Decimal, octal and shortened forms of an address become the address here."""
    answers = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(answer[4][0]) for answer in answers))


class GuardedNetwork(httpcore2.AsyncNetworkBackend):
    """The network as the gateway may use it: public addresses, and the ranges that were opened on purpose."""

    def __init__(self, allowed_ranges: Allowlist, resolve: Resolve = system_resolve) -> None:
        self._allowed = allowed_ranges
        self._resolve = resolve
        self._network = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        clock = asyncio.get_running_loop().time
        until = None if timeout is None else clock() + timeout
        try:
            async with asyncio.timeout_at(until):
                addresses = await self._resolve(host, port)
        except TimeoutError as error:
            raise FetchFailed(
                "connection_failed", f"the name server did not say in time where {host} is"
            ) from error
        except (OSError, UnicodeError) as error:
            raise FetchFailed("name_not_found", f"{host} has no address") from error
        if not addresses:
            raise FetchFailed("name_not_found", f"{host} has no address")
        for address in addresses:
            # All of them, not only the one that would be used: a name that mixes public and private is up to
            # no good.
            if (reason := closed(address, self._allowed)) is not None:
                where = host if host == address else f"{host} is {address}, which"
                raise FetchFailed(
                    "address_not_allowed", f"{where} is {reason}; the gateway does not connect there"
                )
        failure: Exception | None = None
        share = None if until is None else max(until - clock(), 0.01) / len(addresses)
        for address in addresses:
            try:
                return await self._network.connect_tcp(address, port, share, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
        assert failure is not None
        raise failure

    async def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> Any:
        raise FetchFailed("address_not_allowed", "the gateway does not connect to unix sockets")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def guarded_transport(network: GuardedNetwork, tls: Any = True) -> httpx2.AsyncHTTPTransport:
    """A transport without proxies or anything else from the environment, whose every connection is made by
    the network given."""
    transport = httpx2.AsyncHTTPTransport(
        verify=tls, trust_env=False, limits=httpx2.Limits(max_connections=200, max_keepalive_connections=100)
    )
    # There is no public way to hand a transport its network. A test pins that this one works.
    transport._pool._network_backend = network
    return transport
