"""Takes from a workflow its answer for the caller who waits, and how its runs ended."""

import asyncio
from typing import Any, Literal

from postern.core.answer import InvalidResponse, workflow_response
from postern.core.deliveries.delivery import LONGEST_ERROR, End, invocation_of_key
from postern.core.problems import Refused, invalid
from postern.observe.metrics import counter_of_ends
from postern.usecases.calls.waiting import CODE_OF_END
from postern.usecases.deliveries.starting import take_answer
from postern.usecases.runtime.gateway import Gateway


async def respond(
    gateway: Gateway, invocation_id: str, token: str, *, status: Any, headers: Any, body: Any
) -> None:
    """Takes the answer of the response action. The first one in time wins; later ones are refused as gone, and recorded."""
    key = await delivery_of_token(gateway, invocation_id, token)
    status = 200 if status is None else status
    try:
        in_time = await answer_of_workflow(gateway, key, status, headers or {}, body)
    except InvalidResponse as error:
        raise invalid(error.field, str(error)) from None
    if not in_time:
        raise Refused("gone")


def answer_of_workflow(
    gateway: Gateway, key: str, status: Any, headers: Any, body: Any
) -> "asyncio.Future[bool]":
    """Records what a workflow answers the caller of this delivery. True if it was the first answer, and in time."""
    taken = take_answer(gateway, key, workflow_response(status, headers, body))
    taken.add_done_callback(lambda _: gateway.runtime.live.touch(invocation_of_key(key)))
    return taken


async def report_end(
    gateway: Gateway, invocation_id: str, token: str, state: Literal["completed", "failed"], error: str
) -> None:
    """Takes how the runs of a delivery ended from an engine that is not asked for it. The first report counts. A caller who
    still waits hears that there will be no answer."""
    key = await delivery_of_token(gateway, invocation_id, token)
    now = gateway.clock()
    reported = End(state, now, (error or "no reason was given")[:LONGEST_ERROR] if state == "failed" else "")
    endings = gateway.runtime.endings
    with endings.reported(key, reported) as end:
        written = await gateway.store.endings.note([], {key: end}, {}, now)
        if key in written.early:  # its start is just being written down
            endings.early(key, end)
            endings.news.set()
    for lane in written.lanes:
        gateway.runtime.starts_due(lane)
    if key in written.now:
        counter_of_ends(end.state).inc()
    row = await gateway.store.deliveries.get(key)
    if row is not None and row.deadline is not None and not row.answer_code:
        await gateway.store.slots.close_slot(key, CODE_OF_END[end.state])
        gateway.runtime.waiters.wake(key)
    gateway.runtime.live.touch(invocation_id)


async def delivery_of_token(gateway: Gateway, invocation_id: str, token: str) -> str:
    """The key of the invocation's delivery that was given this token."""
    story = await gateway.store.history.get(invocation_id)
    deliveries = [] if story is None else story.deliveries
    # Every token is compared, so that the time does not tell which invocations exist or were replayed.
    matching = [
        delivery.key for delivery in deliveries if gateway.site.is_response_token(token, delivery.key)
    ]
    if not matching:
        raise Refused("not_authenticated", "the response token is not that of this invocation")
    return matching[0]
