"""A webhook as stores keep it: its settings as one document, its secrets beside it."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class StoredSecret:
    id: str
    value: bytes
    created_at: float


@dataclass(slots=True)
class StoredWebhook:
    """A webhook's configuration. ``document`` holds every setting except the secrets, which live in the
    vault."""

    id: str
    short_code: str
    name: str
    enabled: bool
    held: bool
    document: dict[str, Any]
    version: int
    created_at: float
    updated_at: float
    deleted: bool = False
    secrets: dict[str, StoredSecret] = field(default_factory=dict)
    """By field: main, second, and whatever else the document says is secret. Decrypted, for the process that
    uses them."""
    armed_until: float | None = None
    """Record Events: until then the next accepted call is kept as the sample."""


@dataclass(frozen=True, slots=True)
class Tally:
    count: int
    last_at: float
