"""A delivery as the tables have it."""

from collections.abc import Sequence
from typing import Any

import msgspec

from postern.core.answer import WorkflowResponse
from postern.core.history.invocation import Delivery
from postern.stores.sql.bulk import Parameters
from postern.stores.sql.moments import seconds
from postern.stores.sql.tables import deliveries

_COLUMNS = tuple(deliveries.c.keys())
_TIMES = (
    *("next_at", "created_at", "deadline", "started_at"),
    *("responded_at", "released_at", "ended_at", "ask_at"),
)


def delivery_of(row: Sequence[Any]) -> Delivery:
    """All columns in the table's order, as the driver gives them."""
    one = dict(zip(_COLUMNS, row, strict=True))
    for name in _TIMES:
        one[name] = seconds(one[name])
    status, headers, body = (one.pop(f"response_{part}") for part in ("status", "headers", "body"))
    if status is not None:
        pairs = tuple((name, value) for name, value in msgspec.json.decode(headers or b"[]"))
        one["response"] = WorkflowResponse(status, pairs, body or b"")
    one["fields"], one["log"] = msgspec.json.decode(one["fields"]), msgspec.json.decode(one["log"] or b"[]")
    return Delivery(**one)


def key_of(one: Parameters) -> str:
    """What is to be done to deliveries is done in one order everywhere: two processes that write to the same ones do not
    wait for each other in a circle."""
    return str(one["of"])
