"""Every operation of the API, in the order in which its description tells them."""

from postern.surfaces.rest import (
    access,
    bin,
    configuration,
    deliveries,
    engine,
    history,
    listeners,
    live,
    readmission,
    replays,
    samples,
    schedules,
    sending,
    signatures,
    webhooks,
)

OPERATIONS = [
    *webhooks.row.operations,
    *bin.row.operations,
    *samples.row.operations,
    *sending.row.operations,
    *schedules.row.operations,
    *deliveries.row.operations,
    *readmission.row.operations,
    *configuration.row.operations,
    *signatures.row.operations,
    *history.row.operations,
    *replays.row.operations,
    *live.row.operations,
    *listeners.row.operations,
    *engine.row.operations,
    *access.row.operations,
]
