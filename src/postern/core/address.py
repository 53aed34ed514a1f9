"""Addresses: who is calling through which proxies, who may call, and where the gateway itself must never call.

A text that is not an address is kept in quotes, so that the history shows it and no allowlist has it.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    collapse_addresses,
    ip_address,
    ip_network,
)
from typing import Literal
from urllib.parse import urlsplit

from msgspec import Struct

from postern.core.problems import FieldsRefused

IpAddress = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

UNIX = "unix"
"""The peer of a call over the gateway's unix socket, and its entry in a list of trusted proxies."""

_LONGEST = 64
_MAPPED = IPv6Network("::ffff:0:0/96")


def read_address(text: str) -> IpAddress | None:
    """Returns None if the text is not an address. ``::ffff:a.b.c.d`` is read as the IPv4 address in it."""
    if len(text) > _LONGEST:
        return None
    try:
        address = ip_address(text.partition("%")[0] if ":" in text else text)
    except ValueError:
        return None
    return address.ipv4_mapped or address if isinstance(address, IPv6Address) else address


def limit_key(address: str) -> str:
    """The caller that a limit counts: an IPv4 address, or the /64 of an IPv6 one, the least that anybody is given."""
    if ":" not in address:
        return address
    ip = read_address(address)
    if not isinstance(ip, IPv6Address):
        return address if ip is None else str(ip)
    return f"{IPv6Address(int(ip) >> 64 << 64)}/64"


def networks_of(address: str) -> tuple[str, ...]:
    """The network of the company that gives the addresses, and in it the one that a customer may have to itself: the /16 and the
    /24 of an IPv4 address, the /32 and the /48 of an IPv6 one."""
    ip = read_address(address)
    if ip is None:
        return (address,)
    lengths = (16, 24) if isinstance(ip, IPv4Address) else (32, 48)
    return tuple(str(ip_network((ip, length), strict=False)) for length in lengths)


class Allowlist(Struct, frozen=True):
    """Addresses and ranges. An empty list is false, and allows nobody. *No restriction* is None."""

    _spans: tuple[tuple[int, int, int], ...]
    """IP version, last and first address of each range: sorted, without overlaps, so that one bisection answers."""
    _unix: bool

    @staticmethod
    def parse(entries: Iterable[str]) -> "Allowlist":
        """Raises ``FieldsRefused`` with a message for every wrong entry."""
        read = [UNIX if entry.strip() == UNIX else _read_range(entry.strip()) for entry in entries]
        errors = {
            str(place): problem.message for place, problem in enumerate(read) if isinstance(problem, _NoRange)
        }
        if errors:
            raise FieldsRefused(errors)
        networks: list[Network] = [
            *collapse_addresses(block for block in read if isinstance(block, IPv4Network)),
            *collapse_addresses(block for block in read if isinstance(block, IPv6Network)),
        ]
        spans = (
            (block.version, int(block.broadcast_address), int(block.network_address)) for block in networks
        )
        return Allowlist(tuple(spans), UNIX in read)

    def allows(self, address: str) -> bool:
        """Whether the address is in one of the ranges. A text that is not an address is in none."""
        ip = read_address(address)
        if ip is None:
            return self._unix and address == UNIX
        place = bisect_left(self._spans, (ip.version, int(ip)))
        if place == len(self._spans):
            return False
        version, _, first = self._spans[place]
        return version == ip.version and first <= int(ip)

    def __bool__(self) -> bool:
        return bool(self._spans) or self._unix


NOBODY = Allowlist.parse([])


class _NoRange(Struct):
    message: str


def _read_range(text: str) -> Network | _NoRange:
    shown = _quoted(text)
    if "%" in text:
        return _NoRange(f"{shown} names a network interface; leave out what follows the percent sign")
    try:
        network = ip_network(text, strict=False)
    except ValueError:
        write = "write 203.0.113.7, 203.0.113.0/24 or 2001:db8::/32"
        return _NoRange(f"{shown} is neither an address nor a range; {write}")
    prefix = text.partition("/")[2]
    if prefix and not (prefix.isascii() and prefix.isdigit()):
        return _NoRange(f"{shown} has a mask; write {network}")
    if prefix and ip_address(text.partition("/")[0]) != network.network_address:
        write = f"write {network} for the range, or the address alone"
        return _NoRange(f"{shown} is an address inside a range; {write}")
    if isinstance(network, IPv6Network) and network.subnet_of(_MAPPED):
        return IPv4Network((int(network.network_address) & 0xFFFFFFFF, network.prefixlen - 96))
    return network


class ClientAddresses(Struct, frozen=True):
    """The proxies that are believed about where calls come from, and the header in which they name the client."""

    trusted: Allowlist
    header: str

    def is_proxy(self, peer: str | None) -> bool:
        return self.trusted.allows(_peer_address(peer))

    def client(self, peer: str | None, headers: Iterable[tuple[bytes, bytes]]) -> str:
        """The right-most hop that is not a trusted proxy, or the peer if that is not one.

        That client wrote the hops to its left, so they are worth nothing. A hop that is empty or not an address ends
        the search: then the client is unknown, and on no allowlist. A proxy that sends no such header is the client.
        """
        if not self.trusted and peer is not None and ":" not in peer:
            return peer
        client = _peer_address(peer)
        if not self.trusted.allows(client):
            return client
        name = self.header.lower().encode()
        for hop in _hops_from_the_right(name, [value for key, value in headers if key == name]):
            client = hop
            if not self.trusted.allows(hop):
                break
        return client


def names_another(address: str, forwarded: list[bytes], header: bytes) -> bool:
    """Whether the header names clients, and the address that counted is not among them: a proxy that is not trusted sent it."""
    hops = list(_hops_from_the_right(header, forwarded))
    return bool(hops) and address not in hops


def inside(address: str) -> bool:
    """Whether it belongs to this machine or a private network, as a proxy or tunnel in front mostly does."""
    return address == UNIX or (
        read_address(address) is not None and forbidden(address) in ("this host", *_INSIDE)
    )


def _peer_address(peer: str | None) -> str:
    if not peer or peer.startswith(("/", "unix:")):
        return UNIX
    address = read_address(peer)
    return str(address) if address is not None else _quoted(peer)


def _hops_from_the_right(header: bytes, values: list[bytes]) -> Iterator[str]:
    for value in reversed(values):
        text = value.decode("latin-1")
        if header == b"forwarded":
            hops = _forwarded_for(text)
        elif header == b"x-forwarded-for":
            hops = text.split(",")
        else:
            # CF-Connecting-IP and its like hold one address. A list there is not theirs, and is not an address.
            hops = [text]
        for hop in reversed(hops):
            # An empty hop counts: a proxy left out the client's name, and the client is not the name further left.
            yield _hop_address(hop.strip() or "unknown")


_HOP = re.compile(r"\[(?P<six>[^\]]*)\](?::\d{1,5})?|(?P<four>[0-9.]+):\d{1,5}")


def _hop_address(hop: str) -> str:
    """Reads ``1.2.3.4``, ``1.2.3.4:5``, ``::1``, ``[::1]`` and ``[::1]:443``; puts anything else in quotes."""
    match = _HOP.fullmatch(hop) if len(hop) <= _LONGEST else None
    address = read_address((match["six"] or match["four"] or "") if match else hop)
    return str(address) if address is not None else _quoted(hop)


_PAIR = re.compile(r'[ \t]*([!#$%&\'*+.^_`|~0-9A-Za-z-]+)=("(?:[^"\\]|\\.)*"|[^",;\s]*)[ \t]*([,;]|$)')


def _forwarded_for(text: str) -> list[str]:
    """The ``for=`` of each element of a ``Forwarded`` header. A line that is not strictly right is not read at all: a caller
    could open a quote and so swallow the element that the proxy appends."""
    if text.rstrip(" \t").endswith((",", ";")):
        return [text]
    hops: list[str] = []
    hop: str | None = None
    position = 0
    while position < len(text):
        match = _PAIR.match(text, position)
        if match is None:
            return [text]
        name, value, after = match.groups()
        if name.lower() == "for":
            if hop is not None:
                return [text]
            hop = re.sub(r"\\(.)", r"\1", value[1:-1]) if value.startswith('"') else value
        if after != ";":
            hops.append(hop or "unknown")
            hop = None
        position = match.end()
    return hops or ["unknown"]


def _quoted(text: str) -> str:
    """Short, printable, and never an address."""
    return '"' + "".join(c if c.isprintable() and c != '"' else "?" for c in text[:_LONGEST]) + '"'


METADATA = "a cloud's metadata service"

_FORBIDDEN: tuple[tuple[Network, str], ...] = tuple(
    (ip_network(network), reason)
    for reason, networks in (
        # First, because wider ranges hold these too.
        (METADATA, "169.254.169.254 169.254.170.2 100.100.100.200 168.63.129.16 192.0.0.192"),
        (METADATA, "fd00:ec2::254 fd20:ce::254"),
        ("this host", "0.0.0.0/8 127.0.0.0/8 :: ::1"),
        ("a private network", "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 64:ff9b:1::/48 fc00::/7 fec0::/10"),
        ("a provider's shared network", "100.64.0.0/10"),
        ("a link-local address", "169.254.0.0/16 fe80::/10"),
        ("a reserved address", "192.0.0.0/24 192.88.99.0/24 240.0.0.0/4 2001::/23"),
        ("a documentation address", "192.0.2.0/24 198.51.100.0/24 203.0.113.0/24 2001:db8::/32 3fff::/20"),
        ("a benchmarking network", "198.18.0.0/15"),
        ("a multicast address", "224.0.0.0/4 ff00::/8"),
    )
    for network in networks.split()
)
_INSIDE = ("a private network", "a provider's shared network", "a link-local address")
_GLOBAL_UNICAST = IPv6Network("2000::/3")
_NAT64 = IPv6Network("64:ff9b::/96")


def forbidden(address: str | IpAddress) -> str | None:
    """Says why the gateway must not connect to this address, or returns None if it may."""
    # Not `ipaddress.is_global`: it differs between patch releases, and calls multicast and NAT64 global.
    ip = read_address(address if isinstance(address, str) else str(address))
    if ip is None:
        return "not an address"
    if isinstance(ip, IPv6Address) and (carried := _carried(ip)):
        return next((reason for inner in carried if (reason := forbidden(inner))), None)
    for network, reason in _FORBIDDEN:
        if ip.version == network.version and ip in network:
            return reason
    return "a reserved address" if isinstance(ip, IPv6Address) and ip not in _GLOBAL_UNICAST else None


def _carried(address: IPv6Address) -> tuple[IPv4Address, ...]:
    """The IPv4 addresses that a 6to4, Teredo or NAT64 address leads to."""
    if address in _NAT64:
        return (IPv4Address(int(address) & 0xFFFFFFFF),)
    if address.sixtofour is not None:
        return (address.sixtofour,)
    return address.teredo or ()


def closed(address: str, opened: Allowlist) -> str | None:
    """Like ``forbidden``, where these private addresses were opened on purpose."""
    reason = forbidden(address)
    # A metadata service hands out the machine's own credentials: no range, however wide, opens it.
    return None if reason is None or (reason != METADATA and opened.allows(address)) else reason


def reach_of(url: str) -> Literal["this machine", "this network"] | None:
    """Says who alone can reach this URL. Returns None if the internet may. A name is not looked up."""
    try:
        host = (urlsplit(url).hostname or "").rstrip(".")
    except ValueError:
        return None
    if host == "localhost" or host.endswith(".localhost"):
        return "this machine"
    reason = forbidden(host) if read_address(host) is not None else None
    if reason == "this host":
        return "this machine"
    return "this network" if reason in _INSIDE else None
