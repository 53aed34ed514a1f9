"""Requests that a client may send again."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class SeenRequest:
    """An earlier request with the same Idempotency-Key; no answer yet while it is still at work."""

    request: bytes = field(repr=False)
    answer: bytes | None = field(repr=False)
