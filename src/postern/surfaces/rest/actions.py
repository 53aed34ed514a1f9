"""What is done with a webhook that is in use, over HTTP: record an event, run its schedule, hold it."""

from postern.core.access.accounts import Actor
from postern.surfaces.rest.requests import NewWorkflowQuery
from postern.surfaces.rest.table import Rows
from postern.surfaces.rest.webhooks import seen_version
from postern.usecases.calls import readmission
from postern.usecases.calls.views import Recheck
from postern.usecases.deliveries import holds
from postern.usecases.deliveries.views import Dropped, Hold, Released
from postern.usecases.history import samples
from postern.usecases.history.views import Recording, Sample
from postern.usecases.runtime.gateway import Gateway
from postern.usecases.schedules import schedules
from postern.usecases.schedules.views import ScheduleRun
from postern.usecases.webhooks.views import Webhook

row = Rows("Webhooks")


@row("POST", "/webhooks/{webhook_id}/record-events", "Record the next event", level="write")
async def record_events(gateway: Gateway, actor: Actor, webhook_id: str) -> Recording:
    """The next accepted call, or replay, is kept as the sample from which a workflow's variables are shown."""
    return await samples.arm(gateway, actor, webhook_id)


@row("DELETE", "/webhooks/{webhook_id}/record-events", "Stop waiting for an event", level="write", status=204)
async def stop_recording(gateway: Gateway, actor: Actor, webhook_id: str) -> None:
    await samples.disarm(gateway, actor, webhook_id)


@row("GET", "/webhooks/{webhook_id}/sample", "Show the recorded event", level="read")
async def show_sample(gateway: Gateway, actor: Actor, webhook_id: str) -> Sample:
    return await samples.sample(gateway, actor, webhook_id)


@row(
    "GET", "/webhooks/{webhook_id}/new-workflow", "Begin a workflow from the recorded event",
    level="read", media_type="text/x-python; charset=utf-8", refuses=("conflict",),
)  # fmt: skip
async def new_workflow(gateway: Gateway, actor: Actor, webhook_id: str, query: NewWorkflowQuery) -> str:
    """Python source for the embedded engine: the event's fields typed as they came, its Webhook ID filled in.
    Nothing is saved."""
    return await samples.new_workflow(gateway, actor, query.name, webhook_id)


@row("DELETE", "/webhooks/{webhook_id}/sample", "Forget the recorded event", level="write", status=204)
async def forget_sample(gateway: Gateway, actor: Actor, webhook_id: str) -> None:
    await samples.forget(gateway, actor, webhook_id)


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


@row("POST", "/webhooks/{webhook_id}/hold", "Hold", level="write")
async def hold_webhook(gateway: Gateway, actor: Actor, webhook_id: str, if_match: str | None) -> Hold:
    """Calls are recorded and answered as ever; their deliveries wait until somebody lets them go."""
    version = await seen_version(gateway, actor, webhook_id, if_match)
    return await holds.hold(gateway, actor, webhook_id, version)


@row("POST", "/webhooks/{webhook_id}/release", "End the hold", level="write")
async def release_webhook(gateway: Gateway, actor: Actor, webhook_id: str, if_match: str | None) -> Released:
    """What waited is due at once, the oldest first."""
    version = await seen_version(gateway, actor, webhook_id, if_match)
    return await holds.release(gateway, actor, webhook_id, version)


@row("POST", "/webhooks/{webhook_id}/drop", "Drop what is held", level="write")
async def drop_held(gateway: Gateway, actor: Actor, webhook_id: str) -> Dropped:
    """What waits will not be started, unless it is replayed. The hold goes on."""
    return await holds.drop(gateway, actor, webhook_id)


@row("GET", "/webhooks/{webhook_id}/readmissible", "List rejected calls that would pass now", level="read")
async def list_readmissible(gateway: Gateway, actor: Actor, webhook_id: str) -> Recheck:
    """Judged by the webhook's present settings, at the time they were received. Nothing is started."""
    return await readmission.recheck(gateway, actor, webhook_id)
