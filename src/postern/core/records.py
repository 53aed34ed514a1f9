"""What is kept of configuration and access, as use cases see it and stores keep it."""

from dataclasses import dataclass, field
from typing import Any, Literal

from postern.core.invocation import HistoryFilter

Level = Literal["read", "write", "admin"]
LEVELS: tuple[Level, ...] = ("read", "write", "admin")


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
class Sample:
    """What Record Events knows about a webhook: whether it is armed, and the trigger (JSON) it recorded
    last."""

    webhook_id: str
    armed_until: float | None = None
    stored_at: float | None = None
    invocation_id: str | None = None
    trigger: bytes | None = None


@dataclass(frozen=True, slots=True)
class ScheduleState:
    """Where a webhook's schedule stands."""

    webhook_id: str
    anchor: float
    """When it was saved: intervals are counted from then."""
    next_run_at: float | None
    """None while it is switched off or paused."""
    lease_until: float | None
    consecutive_failures: int
    paused_at: float | None
    paused_reason: str
    last_at: float | None
    last_result: str
    last_reason: str
    last_duration_ms: int | None
    etag: str
    last_modified: str
    body_hash: str


@dataclass(frozen=True, slots=True)
class ScheduleRun:
    """What one run comes to, as it is written down together with what it started."""

    at: float
    result: str
    reason: str
    duration_ms: int
    next_run_at: float | None
    failures: int
    paused: bool
    seen: tuple[str, str, str] | None = None
    """ETag, Last-Modified and body hash to compare the next answer with; None leaves them as they are."""


@dataclass(frozen=True, slots=True)
class Tally:
    count: int
    last_at: float


@dataclass(frozen=True, slots=True)
class ApiKey:
    id: str
    name: str
    level: Level
    prefix: str
    created_at: float
    created_by: str
    last_used_at: float | None = None


@dataclass(frozen=True, slots=True)
class Actor:
    """Who is asking, and what they may do."""

    name: str
    level: Level
    id: str = ""
    """The user's or the key's id; empty where neither asks (the command line, the first start)."""
    session: str = ""
    """The id of the session, where a person asks through one."""

    def may(self, needed: Level) -> bool:
        return LEVELS.index(self.level) >= LEVELS.index(needed)


@dataclass(frozen=True, slots=True)
class User:
    id: str
    name: str
    level: Level
    password_hash: str
    created_at: float
    created_by: str
    last_signed_in_at: float | None = None


@dataclass(frozen=True, slots=True)
class Session:
    """A signed-in browser. Its secret is known to the browser alone."""

    id: str
    user_id: str
    created_at: float
    seen_at: float
    address: str
    user_agent: str


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


@dataclass(frozen=True, slots=True)
class SeenRequest:
    """An earlier request with the same Idempotency-Key; no answer yet while it is still at work."""

    request: bytes
    answer: bytes | None


@dataclass(frozen=True, slots=True)
class Replay:
    """A replay of many: planned with a count, then run in the background, the oldest call first."""

    id: str
    state: Literal["planned", "running", "completed", "cancelled", "failed"]
    wanted: HistoryFilter
    count: int
    created_at: float
    created_by: str
    done: int = 0
    skipped: int = 0
    position: str = ""
    """Replayed up to and including this invocation: where a restart goes on."""
    started_at: float | None = None
    ended_at: float | None = None
    error: str = ""
