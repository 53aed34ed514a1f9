"""Who changed what."""

from dataclasses import dataclass, field
from typing import Any

from postern.core.access.accounts import Level

Changes = dict[str, Any]
"""By the name of what was changed: what it was and is, or that it was set where it is secret."""


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """Who changed what, and when. ``changes`` holds the changed fields' names, with before and after where
    neither is secret."""

    id: str
    at: float
    actor: str
    level: Level
    action: str
    subject: str
    changes: Changes = field(default_factory=dict)
