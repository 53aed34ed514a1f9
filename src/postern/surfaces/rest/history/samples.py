"""Record an event of a webhook, and begin a workflow from it, over HTTP."""

from typing import Annotated

from pydantic import Field

from postern.surfaces.rest.framework.operation import Rows
from postern.usecases.history import payload_types, samples
from postern.usecases.history.payload_types import CALLS, MOST_CALLS
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


row.of(
    samples.arm, "record_events", "POST", "/webhooks/{webhook_id}/record-events", "Record the next event",
    query=RecordQuery,
)  # fmt: skip
row.of(
    samples.disarm, "stop_recording", "DELETE", "/webhooks/{webhook_id}/record-events", "Stop waiting for an event",
    status=204,
)  # fmt: skip
row.of(
    samples.arm, "record_all_events", "POST", "/record-events", "Record every webhook's next event",
    query=RecordQuery,
)  # fmt: skip
row.of(
    samples.disarm, "stop_recording_all", "DELETE", "/record-events", "Stop waiting for every webhook's event"
)
row.of(samples.sample, "show_sample", "GET", "/webhooks/{webhook_id}/sample", "Show the recorded event")
row.of(
    samples.new_workflow, "new_workflow", "GET", "/webhooks/{webhook_id}/new-workflow",
    "Begin a workflow from the recorded event", query=NewWorkflowQuery, media_type="text/x-python; charset=utf-8", refuses=("conflict",),
)  # fmt: skip
row.of(
    payload_types.payload_types, "show_payload_types", "GET", "/webhooks/{webhook_id}/payload-types",
    "Show the types of a webhook's payload", query=PayloadTypesQuery,
)  # fmt: skip
row.of(
    samples.forget, "forget_sample", "DELETE", "/webhooks/{webhook_id}/sample", "Forget the recorded event",
    status=204,
)  # fmt: skip
