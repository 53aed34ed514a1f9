"""The audit log's entries."""

from typing import Any

from msgspec import Struct, field

from postern.core.access.accounts import Level

Changes = dict[str, Any]
"""By the name of the changed field: its value before and after; of a secret, only that it was set."""


class AuditEntry(Struct, frozen=True):
    """Who changed what, and when."""

    id: str
    at: float
    actor: str
    level: Level
    action: str
    subject: str
    changes: Changes = field(default_factory=dict)
