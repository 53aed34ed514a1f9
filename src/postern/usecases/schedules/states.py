"""A schedule as it is shown: in words, with its next and its last run."""

from typing import Any

from postern.core.schedules.schedule import explain
from postern.core.schedules.state import ScheduleState
from postern.core.webhooks.settings import ScheduleSetting
from postern.core.webhooks.stored import StoredWebhook
from postern.usecases.present import iso_or_none
from postern.usecases.runtime.gateway import Gateway


async def schedule_states(
    gateway: Gateway, webhooks: list[StoredWebhook]
) -> dict[str, dict[str, Any] | None]:
    """How the schedules of these webhooks stand."""
    scheduled = [webhook.id for webhook in webhooks if webhook.settings.schedule]
    states = await gateway.store.schedules.states(scheduled) if scheduled else {}
    return {
        webhook.id: _told(webhook.settings.schedule, states[webhook.id])
        if webhook.settings.schedule and webhook.id in states
        else None
        for webhook in webhooks
    }


def _told(setting: ScheduleSetting, state: ScheduleState) -> dict[str, Any]:
    return {
        "inWords": explain(setting.times(state.anchor)),
        "nextRunAt": iso_or_none(state.next_run_at),
        "lastRunAt": iso_or_none(state.last_at),
        "lastResult": state.last_result or None,
        "lastReason": state.last_reason or None,
        "lastDurationMs": state.last_duration_ms,
        "consecutiveFailures": state.consecutive_failures,
        "pausedAt": iso_or_none(state.paused_at),
        "pausedReason": state.paused_reason or None,
    }
