"""Where a webhook's schedule stands, and what one run of it comes to."""

from msgspec import Struct

from postern.core.schedules.schedule import Seen


class ScheduleState(Struct, frozen=True):
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


class ScheduleRun(Struct, frozen=True):
    """What one run comes to, as it is written down together with what it started."""

    at: float
    result: str
    reason: str
    duration_ms: int
    next_run_at: float | None
    failures: int
    paused: bool
    seen: Seen | None = None
    """To compare the next answer with; None leaves what was remembered as it is."""
