"""Addresses: who is calling through which proxies, who may call, and where the gateway itself must never
call.

Whatever cannot be read as an address is kept in quotes, so that it shows in history and is on no allowlist.
"""

import re
from bisect import bisect_right
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
from typing import Literal, TypeVar
from urllib.parse import urlsplit

from msgspec import Struct

Address = IPv4Address | IPv6Address
Network = TypeVar("Network", IPv4Network, IPv6Network)

UNIX = "unix"
"""The peer of a call that came over the gateway's unix socket, and the entry that stands for it in a list of
trusted proxies."""

_LONGEST = 64
_MAPPED = IPv6Network("::ffff:0:0/96")


def read_address(text: str) -> Address | None:
    """The address that the text is, or None. An IPv4 address that comes as ``::ffff:a.b.c.d`` is the IPv4
    address."""
    if len(text) > _LONGEST:
        return None
    try:
        address = ip_address(text.partition("%")[0] if ":" in text else text)
    except ValueError:
        return None
    return address.ipv4_mapped or address if isinstance(address, IPv6Address) else address


def limit_key(address: str) -> str:
    """Who counts as one where something is limited per caller: an IPv4 address, or the /64 of an IPv6 one, which
    is the least that anybody is given."""
    if ":" not in address:
        return address
    found = read_address(address)
    if not isinstance(found, IPv6Address):
        return address if found is None else str(found)
    return f"{IPv6Address(int(found) >> 64 << 64)}/64"


def neighbourhood(address: str) -> str:
    """What one customer of a provider may have whole: the /24 of an IPv4 address, the /48 of an IPv6 one."""
    found = read_address(address)
    if found is None:
        return address
    own = 8 if isinstance(found, IPv4Address) else 80
    return str(type(found)(int(found) >> own << own))


class InvalidRanges(ValueError):
    """Some entries are neither an address nor a range. ``errors`` says why, by the entry's place in the
    list."""

    def __init__(self, errors: dict[int, str]) -> None:
        super().__init__("; ".join(errors.values()))
        self.errors = errors


class _Spans(Struct, frozen=True):
    """Ranges as sorted numbers that do not overlap: one bisection answers, however many there are."""

    first: tuple[int, ...]
    last: tuple[int, ...]

    @staticmethod
    def of(networks: Iterable[Network]) -> "_Spans":
        merged = list(collapse_addresses(networks))
        return _Spans(
            tuple(int(n.network_address) for n in merged), tuple(int(n.broadcast_address) for n in merged)
        )

    def hold(self, number: int) -> bool:
        index = bisect_right(self.first, number) - 1
        return index >= 0 and number <= self.last[index]


class Allowlist(Struct, frozen=True):
    """Addresses and ranges. An empty one is false, and allows nobody: *no restriction* is the absence of a
    list."""

    entries: tuple[str, ...]
    _four: _Spans
    _six: _Spans
    _unix: bool

    @staticmethod
    def parse(entries: Iterable[str]) -> "Allowlist":
        """Raises ``InvalidRanges`` with a message for every wrong entry."""
        four: list[IPv4Network] = []
        six: list[IPv6Network] = []
        kept: list[str] = []
        errors: dict[int, str] = {}
        for place, entry in enumerate(entries):
            text = entry.strip()
            if text == UNIX:
                kept.append(text)
                continue
            network = _read_range(text)
            if isinstance(network, str):
                errors[place] = network
                continue
            if isinstance(network, IPv4Network):
                four.append(network)
            else:
                six.append(network)
            kept.append(
                str(network.network_address) if network.prefixlen == network.max_prefixlen else str(network)
            )
        if errors:
            raise InvalidRanges(errors)
        return Allowlist(tuple(kept), _Spans.of(four), _Spans.of(six), UNIX in kept)

    def allows(self, address: str) -> bool:
        """Whether the address is in one of the ranges. What is not an address is in none."""
        found = read_address(address)
        if found is None:
            return self._unix and address == UNIX
        return (self._four if found.version == 4 else self._six).hold(int(found))

    def __bool__(self) -> bool:
        return bool(self.entries)


NOBODY = Allowlist.parse([])


def _read_range(text: str) -> IPv4Network | IPv6Network | str:
    """The range, or what is wrong with the text."""
    shown = _quoted(text)
    if "%" in text:
        return f"{shown} names a network interface; leave out what follows the percent sign"
    try:
        network = ip_network(text, strict=False)
    except ValueError:
        return (
            f"{shown} is neither an address nor a range; write 203.0.113.7, 203.0.113.0/24 or 2001:db8::/32"
        )
    prefix = text.partition("/")[2]
    if prefix and not (prefix.isascii() and prefix.isdigit()):
        return f"{shown} has a mask; write {network}"
    if prefix and ip_address(text.partition("/")[0]) != network.network_address:
        return f"{shown} is an address inside a range; write {network} for the range, or the address alone"
    if isinstance(network, IPv6Network) and network.subnet_of(_MAPPED):
        return IPv4Network((int(network.network_address) & 0xFFFFFFFF, network.prefixlen - 96))
    return network


class ClientAddresses(Struct, frozen=True):
    """Whom to believe about where calls come from: the proxies, and the one header in which they name the
    client."""

    trusted: Allowlist
    header: str

    def is_proxy(self, peer: str | None) -> bool:
        return self.trusted.allows(_peer_address(peer))

    def client(self, peer: str | None, headers: Iterable[tuple[bytes, bytes]]) -> str:
        """The right-most hop that is not a trusted proxy; the peer itself unless it is one.

        Hops to the left of the one found were written by whoever that is, and are worth nothing. A hop that is
        empty or no address ends the search: then the client is unknown, and on no allowlist. Only a proxy that
        sends no such header at all is itself the client.
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
    """Whether a client was named in that header and this address, the one that counted, is none of those
    named: whoever sent it is not among the trusted proxies."""
    hops = list(_hops_from_the_right(header, forwarded))
    return bool(hops) and address not in hops


def inside(address: str) -> bool:
    """Whether it is this machine's or a private network's, as that of a proxy or tunnel in front mostly
    is."""
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
            # CF-Connecting-IP and its like hold one address; a list there is not theirs, and reads as no
            # address.
            hops = [text]
        for hop in reversed(hops):
            # An empty one too: a proxy that was to name somebody there did not, and whoever is named further
            # left is not it.
            yield _hop_address(hop.strip() or "unknown")


_HOP = re.compile(r"\[(?P<six>[^\]]*)\](?::\d{1,5})?|(?P<four>[0-9.]+):\d{1,5}")


def _hop_address(hop: str) -> str:
    """``1.2.3.4``, ``1.2.3.4:5``, ``::1``, ``[::1]``, ``[::1]:443`` as an address; anything else in
    quotes."""
    match = _HOP.fullmatch(hop) if len(hop) <= _LONGEST else None
    address = read_address((match["six"] or match["four"] or "") if match else hop)
    return str(address) if address is not None else _quoted(hop)


_PAIR = re.compile(r'[ \t]*([!#$%&\'*+.^_`|~0-9A-Za-z-]+)=("(?:[^"\\]|\\.)*"|[^",;\s]*)[ \t]*([,;]|$)')


def _forwarded_for(text: str) -> list[str]:
    """The ``for=`` of each element of one ``Forwarded`` header, in order.

    One line is read strictly or not at all: a caller who opens a quote could otherwise swallow the element
    that the proxy appends.
    """
    if text.rstrip(" \t").endswith((",", ";")):
        return [text]
    hops: list[str] = []
    found: str | None = None
    position = 0
    while position < len(text):
        match = _PAIR.match(text, position)
        if match is None:
            return [text]
        name, value, after = match.groups()
        if name.lower() == "for":
            if found is not None:
                return [text]
            found = re.sub(r"\\(.)", r"\1", value[1:-1]) if value.startswith('"') else value
        if after != ";":
            hops.append(found or "unknown")
            found = None
        position = match.end()
    return hops or ["unknown"]


def _quoted(text: str) -> str:
    """Short, printable, and never an address."""
    return '"' + "".join(c if c.isprintable() and c != '"' else "?" for c in text[:_LONGEST]) + '"'


METADATA = "a cloud's metadata service"

_FORBIDDEN: tuple[tuple[IPv4Network | IPv6Network, str], ...] = tuple(
    (ip_network(network), reason)
    for network, reason in (
        # The narrow ones first: they name what a wider range would only call private.
        ("169.254.169.254", METADATA),
        ("169.254.170.2", METADATA),
        ("100.100.100.200", METADATA),
        ("168.63.129.16", METADATA),
        ("192.0.0.192", METADATA),
        ("fd00:ec2::254", METADATA),
        ("fd20:ce::254", METADATA),
        ("0.0.0.0/8", "this host"),
        ("10.0.0.0/8", "a private network"),
        ("100.64.0.0/10", "a provider's shared network"),
        ("127.0.0.0/8", "this host"),
        ("169.254.0.0/16", "a link-local address"),
        ("172.16.0.0/12", "a private network"),
        ("192.0.0.0/24", "a reserved address"),
        ("192.0.2.0/24", "a documentation address"),
        ("192.88.99.0/24", "a reserved address"),
        ("192.168.0.0/16", "a private network"),
        ("198.18.0.0/15", "a benchmarking network"),
        ("198.51.100.0/24", "a documentation address"),
        ("203.0.113.0/24", "a documentation address"),
        ("224.0.0.0/4", "a multicast address"),
        ("240.0.0.0/4", "a reserved address"),
        ("::", "this host"),
        ("::1", "this host"),
        ("64:ff9b:1::/48", "a private network"),
        ("2001::/23", "a reserved address"),
        ("2001:db8::/32", "a documentation address"),
        ("3fff::/20", "a documentation address"),
        ("fc00::/7", "a private network"),
        ("fe80::/10", "a link-local address"),
        ("fec0::/10", "a private network"),
        ("ff00::/8", "a multicast address"),
    )
)
_INSIDE = ("a private network", "a provider's shared network", "a link-local address")
_GLOBAL_UNICAST = IPv6Network("2000::/3")
_NAT64 = IPv6Network("64:ff9b::/96")


def forbidden(address: str | Address) -> str | None:
    """Why the gateway must not connect to this address, in words, or None where it may.

    ``ipaddress.is_global`` will not do: it differs between patch releases, and calls multicast and NAT64
    global.
    """
    found = read_address(address if isinstance(address, str) else str(address))
    if found is None:
        return "not an address"
    if isinstance(found, IPv6Address) and (carried := _carried(found)):
        return next((reason for inner in carried if (reason := forbidden(inner))), None)
    for network, reason in _FORBIDDEN:
        if found.version == network.version and found in network:
            return reason
    return "a reserved address" if isinstance(found, IPv6Address) and found not in _GLOBAL_UNICAST else None


def _carried(address: IPv6Address) -> tuple[IPv4Address, ...]:
    """The IPv4 addresses that a 6to4, Teredo or NAT64 address leads to."""
    if address in _NAT64:
        return (IPv4Address(int(address) & 0xFFFFFFFF),)
    if address.sixtofour is not None:
        return (address.sixtofour,)
    return address.teredo or ()


def closed(address: str, opened: Allowlist) -> str | None:
    """Why the gateway must not connect there, where only these private addresses were opened on purpose."""
    reason = forbidden(address)
    # A metadata service hands out the machine's own credentials: no range, however wide, opens it.
    return None if reason is None or (reason != METADATA and opened.allows(address)) else reason


def reach_of(url: str) -> Literal["this machine", "this network"] | None:
    """Who alone can reach this URL, as far as it says so by itself: a name is not looked up. None where the
    internet may."""
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
