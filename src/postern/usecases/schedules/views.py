"""What is answered about schedules: how they stand, and what came of one fetch."""

from postern.usecases.answers import Time, View


class ScheduleState(View):
    in_words: str
    next_run_at: Time | None
    last_run_at: Time | None
    last_result: str | None
    last_reason: str | None
    last_duration_ms: int | None
    consecutive_failures: int
    paused_at: Time | None
    paused_reason: str | None


class ScheduleRun(View):
    """What came of one fetch."""

    webhook_id: str
    result: str
    reason: str | None
    duration_ms: int
    invocation_ids: list[str]
    next_run_at: Time | None
    paused: bool
