"""Who changed what."""

from typing import Any

from msgspec import Struct, field

from postern.core.access.accounts import Level

Changes = dict[str, Any]
"""By the name of what was changed: what it was and is, or that it was set where it is secret."""


class AuditEntry(Struct, frozen=True):
    """Who changed what, and when. ``changes`` holds the changed fields' names, with before and after where
    neither is secret."""

    id: str
    at: float
    actor: str
    level: Level
    action: str
    subject: str
    changes: Changes = field(default_factory=dict)
