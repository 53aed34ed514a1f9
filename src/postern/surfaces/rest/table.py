"""Every operation of the API, in the order in which its description shows them."""

from postern.surfaces.rest import access, listeners, operations, schedules
from postern.surfaces.rest.calls import answers, readmission
from postern.surfaces.rest.deliveries import holds, replays
from postern.surfaces.rest.history import history, live, marks, samples
from postern.surfaces.rest.signatures import sending, signatures
from postern.surfaces.rest.webhooks import bin, configuration, webhooks

OPERATIONS = [
    *webhooks.row.operations,
    *bin.row.operations,
    *samples.row.operations,
    *sending.row.operations,
    *schedules.row.operations,
    *holds.row.operations,
    *readmission.webhooks_row.operations,
    *configuration.row.operations,
    *operations.configuration_row.operations,
    *signatures.row.operations,
    *history.row.operations,
    *marks.row.operations,
    *answers.row.operations,
    *readmission.history_row.operations,
    *replays.row.operations,
    *live.row.operations,
    *listeners.row.operations,
    *operations.engine_row.operations,
    *access.row.operations,
]
