"""Record an event of a webhook, and begin a workflow from it, over HTTP."""

from typing import Annotated

from pydantic import Field

from postern.core.access.accounts import Actor
from postern.surfaces.rest.framework.operation import Rows
from postern.usecases.history import payload_types, samples
from postern.usecases.history.payload_types import CALLS, MOST_CALLS
from postern.usecases.history.views.requests import PayloadTypes
from postern.usecases.history.views.samples import NotRecording, Recording, Sample
from postern.usecases.runtime.gateway import Gateway
from postern.usecases.shapes import Shape

row = Rows("Webhooks")


class RecordQuery(Shape):
    seconds: Annotated[float, Field(ge=1, le=86_400, description="How long to wait for it.")] = 600


class PayloadTypesQuery(Shape):
    calls: Annotated[
        int, Field(ge=1, le=MOST_CALLS, description="How many of the newest recorded calls are read at most.")
    ] = CALLS


class NewWorkflowQuery(Shape):
    name: Annotated[str, Field(min_length=1, max_length=80, description="What to call it.")]


@row("POST", "/webhooks/{webhook_id}/record-events", "Record the next event", level="write")
async def record_events(gateway: Gateway, actor: Actor, webhook_id: str, query: RecordQuery) -> Recording:
    """The next accepted call, or replay, is kept as the sample from which a workflow's variables are shown."""
    return await samples.arm(gateway, actor, webhook_id, query.seconds)


@row("DELETE", "/webhooks/{webhook_id}/record-events", "Stop waiting for an event", level="write", status=204)
async def stop_recording(gateway: Gateway, actor: Actor, webhook_id: str) -> None:
    await samples.disarm(gateway, actor, webhook_id)


@row("POST", "/record-events", "Record every webhook's next event", level="write")
async def record_all_events(gateway: Gateway, actor: Actor, query: RecordQuery) -> Recording:
    """Each webhook waits for its own."""
    return await samples.arm(gateway, actor, None, query.seconds)


@row("DELETE", "/record-events", "Stop waiting for every webhook's event", level="write")
async def stop_recording_all(gateway: Gateway, actor: Actor) -> NotRecording:
    return await samples.disarm(gateway, actor)


@row("GET", "/webhooks/{webhook_id}/sample", "Show the recorded event", level="read")
async def show_sample(gateway: Gateway, actor: Actor, webhook_id: str) -> Sample:
    return await samples.sample(gateway, actor, webhook_id)


@row(
    "GET", "/webhooks/{webhook_id}/new-workflow", "Begin a workflow from the recorded event",
    level="read", media_type="text/x-python; charset=utf-8", refuses=("conflict",),
)  # fmt: skip
async def new_workflow(gateway: Gateway, actor: Actor, webhook_id: str, query: NewWorkflowQuery) -> str:
    """Python source for the embedded engine: the event's fields typed as they came, its Webhook ID filled in. Where none
    was recorded, from the newest call. Nothing is saved."""
    return await samples.new_workflow(gateway, actor, query.name, webhook_id)


@row("GET", "/webhooks/{webhook_id}/payload-types", "Show the types of a webhook's payload", level="read")
async def show_payload_types(
    gateway: Gateway, actor: Actor, webhook_id: str, query: PayloadTypesQuery
) -> PayloadTypes:
    """TypedDicts as Python source, from the newest recorded calls."""
    return await payload_types.payload_types(gateway, actor, webhook_id, query.calls)


@row("DELETE", "/webhooks/{webhook_id}/sample", "Forget the recorded event", level="write", status=204)
async def forget_sample(gateway: Gateway, actor: Actor, webhook_id: str) -> None:
    await samples.forget(gateway, actor, webhook_id)
