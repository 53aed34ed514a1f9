"""A schedule as it is shown: in words, with its next and its last run."""

from typing import Any

from postern.core.records import ScheduleState, StoredWebhook
from postern.core.schedule import explain, saved_schedule
from postern.usecases.gateway import Gateway
from postern.usecases.present import iso


async def schedule_states(gateway: Gateway, webhooks: list[StoredWebhook]) -> dict[str, dict[str, Any] | None]:
    """How the schedules of these webhooks stand."""
    scheduled = [webhook.id for webhook in webhooks if webhook.document["schedule"]]
    states = await gateway.store.schedules.states(scheduled) if scheduled else {}
    return {webhook.id: _told(webhook, states[webhook.id]) if webhook.id in states else None for webhook in webhooks}


def _told(webhook: StoredWebhook, state: ScheduleState) -> dict[str, Any]:
    return {
        "inWords": explain(saved_schedule(webhook.document["schedule"], state.anchor)),
        "nextRunAt": _time(state.next_run_at),
        "lastRunAt": _time(state.last_at),
        "lastResult": state.last_result or None,
        "lastReason": state.last_reason or None,
        "lastDurationMs": state.last_duration_ms,
        "consecutiveFailures": state.consecutive_failures,
        "pausedAt": _time(state.paused_at),
        "pausedReason": state.paused_reason or None,
    }


def _time(seconds: float | None) -> str | None:
    return None if seconds is None else iso(seconds)
