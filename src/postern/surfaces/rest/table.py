"""Every operation of the API, in the order in which its description shows them."""

from collections.abc import Iterator

from postern.surfaces.rest import access, calls, configuration, listeners, replays, signatures, webhooks
from postern.surfaces.rest.framework.operation import Operation
from postern.surfaces.rest.history import history, live, samples
from postern.surfaces.rest.operations import configuration_row, engine_row

TOPICS = [
    webhooks.row,
    samples.row,
    calls.webhooks_row,
    configuration.row,
    configuration_row,
    signatures.row,
    history.row,
    signatures.fix_row,
    calls.history_row,
    replays.row,
    live.row,
    listeners.row,
    engine_row,
    access.row,
]


def operations() -> Iterator[Operation]:
    for topic in TOPICS:
        yield from topic.operations
