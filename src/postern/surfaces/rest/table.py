"""Every operation of the API, in the order in which its description shows them."""

from collections.abc import Iterator

from postern.surfaces.rest import access, listeners, schedules
from postern.surfaces.rest.calls import answers, readmission
from postern.surfaces.rest.deliveries import holds, replays
from postern.surfaces.rest.framework.operation import Operation
from postern.surfaces.rest.history import history, live, marks, samples
from postern.surfaces.rest.operations import configuration_row, engine_row
from postern.surfaces.rest.signatures import sending, signatures
from postern.surfaces.rest.webhooks import bin, configuration, webhooks

TOPICS = [
    webhooks.row,
    bin.row,
    samples.row,
    sending.row,
    schedules.row,
    holds.row,
    readmission.webhooks_row,
    configuration.row,
    configuration_row,
    signatures.row,
    history.row,
    marks.row,
    signatures.fix_row,
    answers.row,
    readmission.history_row,
    replays.row,
    live.row,
    listeners.row,
    engine_row,
    access.row,
]


def operations() -> Iterator[Operation]:
    for topic in TOPICS:
        yield from topic.operations
