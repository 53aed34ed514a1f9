"""A delivery as the tables have it."""

from collections.abc import Sequence
from typing import Any

import msgspec

from postern.core.answer import WorkflowResponse
from postern.core.history.invocation import Delivery
from postern.stores.sql.bulk import Parameters
from postern.stores.sql.moments import seconds


def delivery_of(row: Sequence[Any]) -> Delivery:
    """All columns in the table's order: to ask for each by its name takes five times as long."""
    (
        key,
        invocation_id,
        webhook_id,
        emission,
        state,
        attempts,
        next_at,
        fields,
        created_at,
        deadline,
        started_at,
        runs,
        error,
        log,
        response_status,
        response_headers,
        response_body,
        responded_at,
        answer_code,
        released_at,
        ended_at,
        ask_at,
        asked_by,
        replay_id,
    ) = row
    response = None
    if response_status is not None:
        headers = tuple((name, value) for name, value in msgspec.json.decode(response_headers or b"[]"))
        response = WorkflowResponse(response_status, headers, response_body or b"")
    return Delivery(
        key=key,
        invocation_id=invocation_id,
        webhook_id=webhook_id,
        emission=emission,
        state=state,
        attempts=attempts,
        next_at=seconds(next_at),
        fields=msgspec.json.decode(fields),
        created_at=seconds(created_at),
        deadline=seconds(deadline),
        started_at=seconds(started_at),
        runs=runs,
        error=error,
        log=msgspec.json.decode(log) if log else [],
        response=response,
        responded_at=seconds(responded_at),
        answer_code=answer_code,
        released_at=seconds(released_at),
        ended_at=seconds(ended_at),
        ask_at=seconds(ask_at),
        asked_by=asked_by,
        replay_id=replay_id,
    )


def key_of(one: Parameters) -> str:
    """What is to be done to deliveries is done in one order everywhere: two processes that write to the same ones do not
    wait for each other in a circle."""
    return str(one["of"])
