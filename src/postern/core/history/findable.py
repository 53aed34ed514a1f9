"""The keys by which a call is found at once: its mapped values, its event's name and its sender's address."""

from collections.abc import Iterable

LONGEST = 80
"""Characters. Only the beginning of a longer value is compared."""


def value_key(value: str) -> bytes:
    return b"v" + value.strip().lower()[:LONGEST].encode(errors="replace")


def beginning_key(value: str) -> bytes | None:
    """The beginning of the keys that a text with ``*`` at its end means; None for another text."""
    return value_key(value.strip()[:-1]) if len(value.strip()) > 1 and value.strip().endswith("*") else None


def address_key(address: str) -> bytes:
    return b"a" + address.strip().lower()[:LONGEST].encode(errors="replace")


def keys_of(address: str, values: Iterable[str]) -> set[bytes]:
    return {address_key(address), *(value_key(value) for value in values if value.strip())}
