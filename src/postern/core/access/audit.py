"""Who changed what."""

from dataclasses import dataclass, field
from typing import Any

from postern.core.access.accounts import Level


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
    changes: dict[str, Any] = field(default_factory=dict)
