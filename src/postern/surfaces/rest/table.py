"""Every operation of the API, in the order in which its description shows them."""

from collections.abc import Iterator

from postern.surfaces.rest import access, history, incidents, listeners, signatures, webhooks
from postern.surfaces.rest import operations as operating
from postern.surfaces.rest.framework.operation import Operation

TOPICS = [
    webhooks.row,
    operating.row,
    signatures.row,
    history.row,
    incidents.row,
    listeners.row,
    operating.engine_row,
    access.row,
]


def operations() -> Iterator[Operation]:
    for topic in TOPICS:
        yield from topic.operations
