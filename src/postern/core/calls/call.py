"""A call: one HTTP request to a webhook's URL, exactly as it was received."""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote_to_bytes

import msgspec
from msgspec.structs import replace

_TRACEPARENT = re.compile(rb"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
_NONE: frozenset[bytes] = frozenset()
_OF_THE_TRACE = frozenset({b"traceparent"})

Headers = tuple[tuple[bytes, bytes], ...]


def header_values(headers: Headers, name: bytes) -> list[bytes]:
    """Every value of this (lower-case) name, in order: a repeated header has several values."""
    return [value for key, value in headers if key == name]


def query_pairs(query: bytes) -> list[tuple[bytes, bytes]]:
    """The names and values of a query string, decoded, in order. Nothing a stranger sends can make it fail."""
    pairs = []
    for part in query.split(b"&"):
        if part:
            name, _, value = part.partition(b"=")
            pairs.append((unquote_plus(name), unquote_plus(value)))
    return pairs


def unquote_plus(text: bytes) -> bytes:
    if b"+" in text:
        text = text.replace(b"+", b" ")
    return unquote_to_bytes(text) if b"%" in text else text


class Call(msgspec.Struct, eq=False):
    """A call as it arrived: header names in lower case, every other byte untouched. ``address``: the client's address as the trusted
    proxies tell it, or the beginning of what is no address, in quotes. ``body`` is empty until it has been read.

    Like everything that is made for every call this is a Struct: making a dataclass takes ten times as long.
    """

    method: str
    path: bytes
    query: bytes
    headers: Headers
    body: bytes
    address: str
    received_at: float
    base_url: str = ""
    from_proxy: bool = False
    """Whether its peer is a trusted proxy. Set only where the call has a ``traceparent``."""
    _by_name: dict[bytes, bytes] | None = None
    _query_pairs: list[tuple[bytes, bytes]] | None = None
    _objects: dict[Any, Any] | None = None
    """The results of ``read_object``: the check of a signature and the mapping ask for the same."""
    without_token: "tuple[object, bytes | None] | None" = None
    """Whose token is not in this body, and the body: it is looked for once (``TokenCredential.body_without_token``)."""
    unread: bool = False
    """It had a body that nobody has read."""
    fetched: Mapping[str, bytes] | None = None
    """The senders' key sets that are at hand, by their addresses. A check needs them."""

    def __repr__(self) -> str:
        """Without headers, query and body, which may hold a credential."""
        return f"Call({self.method} {self.path!r} from {self.address!r}, {len(self.body)} bytes)"

    def header(self, name: bytes) -> list[bytes]:
        by_name = self._by_name
        if by_name is None:
            by_name = self._by_name = dict(self.headers)
        value = by_name.get(name)
        if value is None:
            return []
        return [value] if len(by_name) == len(self.headers) else header_values(self.headers, name)

    def first_header(self, name: bytes) -> bytes | None:
        by_name = self._by_name
        if by_name is None:
            by_name = self._by_name = dict(self.headers)
        value = by_name.get(name)
        if value is None or len(by_name) == len(self.headers):
            return value
        return header_values(self.headers, name)[0]

    @property
    def query_pairs(self) -> list[tuple[bytes, bytes]]:
        pairs = self._query_pairs
        if pairs is None:
            pairs = self._query_pairs = query_pairs(self.query)
        return pairs

    @property
    def traceparent(self) -> str:
        """The trace that it belongs to (W3C Trace Context), if a trusted proxy says so."""
        sent = self.header(b"traceparent") if self.from_proxy else []
        return sent[0].decode() if len(sent) == 1 and _TRACEPARENT.fullmatch(sent[0]) else ""

    @property
    def untrusted(self) -> frozenset[bytes]:
        """The headers that are masked when the call is stored: a ``traceparent`` that no trusted proxy has sent."""
        is_named = self.first_header(b"traceparent") is not None
        return _OF_THE_TRACE if is_named and not self.traceparent else _NONE

    def but(self, **changes: Any) -> "Call":
        """A changed copy, without what was looked up in this one."""
        return replace(self, _by_name=None, _query_pairs=None, _objects=None, without_token=None, **changes)
