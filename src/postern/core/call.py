"""A call: one HTTP request to a webhook's URL, exactly as it was received."""

from dataclasses import dataclass
from functools import cached_property
from urllib.parse import unquote_to_bytes

Headers = tuple[tuple[bytes, bytes], ...]


def header_values(headers: Headers, name: bytes) -> list[bytes]:
    """Every value sent under this (lower-case) name, in order: a repeated header is several values, never one."""
    return [value for key, value in headers if key == name]


def query_pairs(query: bytes) -> list[tuple[bytes, bytes]]:
    """The query string's names and values, percent-decoded, in order. Total: nothing a stranger sends can fail here."""
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


@dataclass(eq=False)
class Call:
    """What arrived, never changed afterwards (not a frozen dataclass: that makes each call's construction three times as dear).

    Header names are lower-case (they are case-insensitive); every other byte is untouched.

    ``address`` is the client's address as the trusted proxies tell it, or what could not be parsed, verbatim.
    ``body`` is empty until it has been read; the steps that come before the body do not look at it.
    """

    method: str
    path: bytes
    query: bytes
    headers: Headers
    body: bytes
    address: str
    received_at: float
    base_url: str = ""

    def header(self, name: bytes) -> list[bytes]:
        return header_values(self.headers, name)

    def first_header(self, name: bytes) -> bytes | None:
        for key, value in self.headers:
            if key == name:
                return value
        return None

    @cached_property
    def query_pairs(self) -> list[tuple[bytes, bytes]]:
        return query_pairs(self.query)

    @property
    def url(self) -> str:
        """The URL as the outside world knows it: the configured base address, then what was asked for, verbatim."""
        target = self.path + (b"?" + self.query if self.query else b"")
        return self.base_url + target.decode("latin-1")
