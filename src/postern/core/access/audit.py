"""The audit log's entries: who changed what, and when."""

from typing import Any

from msgspec import Struct, field

from postern.core.access.accounts import Level
from postern.core.moment import Time

AuditedChanges = dict[str, Any]
"""By the name of the changed field: its value before and after; of a secret, only that it was set."""


class AuditEntry(Struct, frozen=True, rename="camel"):
    id: str
    at: Time
    actor: str
    level: Level
    action: str
    subject: str
    changes: AuditedChanges = field(default_factory=dict)
