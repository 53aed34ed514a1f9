"""A schedule as it is shown: in words, with its next and its last run."""

from postern.core.schedules.schedule import explain
from postern.core.schedules.state import ScheduleState
from postern.core.webhooks.settings import ScheduleSetting
from postern.core.webhooks.stored import StoredWebhook
from postern.usecases.answers import Time
from postern.usecases.runtime.gateway import Gateway
from postern.usecases.webhooks import views


async def schedule_states(
    gateway: Gateway, webhooks: list[StoredWebhook]
) -> dict[str, views.ScheduleState | None]:
    """How the schedules of these webhooks stand."""
    scheduled = [webhook.id for webhook in webhooks if webhook.settings.schedule]
    states = await gateway.store.schedules.states(scheduled) if scheduled else {}
    return {
        webhook.id: _state(webhook.settings.schedule, states[webhook.id])
        if webhook.settings.schedule and webhook.id in states
        else None
        for webhook in webhooks
    }


def _state(setting: ScheduleSetting, state: ScheduleState) -> views.ScheduleState:
    return views.ScheduleState(
        in_words=explain(setting.times(state.anchor)),
        next_run_at=Time.maybe(state.next_run_at),
        last_run_at=Time.maybe(state.last_at),
        last_result=state.last_result or None,
        last_reason=state.last_reason or None,
        last_duration_ms=state.last_duration_ms,
        consecutive_failures=state.consecutive_failures,
        paused_at=Time.maybe(state.paused_at),
        paused_reason=state.paused_reason or None,
    )
