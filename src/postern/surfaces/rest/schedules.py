"""Run a webhook's schedule, over HTTP."""

from postern.core.access.accounts import Actor
from postern.surfaces.rest.framework.operation import Rows
from postern.usecases.runtime.gateway import Gateway
from postern.usecases.schedules import schedules
from postern.usecases.schedules.views import ScheduleRun
from postern.usecases.webhooks.views import Webhook

row = Rows("Webhooks")


@row("POST", "/webhooks/{webhook_id}/schedule/run", "Fetch now", level="write", refuses=("conflict",))
async def run_schedule(gateway: Gateway, actor: Actor, webhook_id: str) -> ScheduleRun:
    """Fetches once, now, and says what came of it."""
    return await schedules.run_now(gateway, actor, webhook_id)


@row(
    "POST", "/webhooks/{webhook_id}/schedule/resume", "Go on after a pause",
    level="write", versioned=True, refuses=("conflict",),
)  # fmt: skip
async def resume_schedule(gateway: Gateway, actor: Actor, webhook_id: str) -> Webhook:
    return await schedules.resume(gateway, actor, webhook_id)
