"""The synchronous response: the caller waits, the response action's POST answers, and the database row
decides who won."""

import asyncio
import time
from typing import Any, Literal

from msgspec import Struct

from postern.core import answer as answers
from postern.core.answer import Answer, InvalidResponse, WorkflowResponse, workflow_response
from postern.core.deliveries.delivery import (
    LONGEST_ERROR,
    End,
    EngineRejected,
    EngineUnavailable,
    delivery_key,
)
from postern.core.history.invocation import Delivery, StoreUnavailable
from postern.core.problems import FieldError, Refused
from postern.core.webhooks.webhook import Webhook
from postern.observe.counting import counter_of_ends
from postern.observe.logs import Log
from postern.usecases.deliveries.dispatch import start_delivery, take_answer
from postern.usecases.runtime.gateway import Gateway

log = Log()

_ANSWER_CODES = {"completed": "completed", "failed": "workflow_failed"}
"""What a caller who still waits hears when all runs have ended."""


async def respond(
    gateway: Gateway, invocation_id: str, token: str, status: Any, headers: Any, body: Any
) -> None:
    """What the response action sends. The first answer in time wins; later ones are refused as gone, and
    recorded."""
    key = await delivery_of_token(gateway, invocation_id, token)
    try:
        in_time = await answer_of_workflow(
            gateway, key, 200 if status is None else status, headers or {}, body
        )
    except InvalidResponse as error:
        raise Refused("invalid_request", errors=[FieldError(error.field, str(error))]) from None
    if not in_time:
        raise Refused("gone")


def answer_of_workflow(
    gateway: Gateway, key: str, status: Any, headers: Any, body: Any
) -> "asyncio.Future[bool]":
    """Record what a workflow answers the caller of this delivery. True when it was the first, and in time."""
    taken = take_answer(gateway, key, workflow_response(status, headers, body))
    taken.add_done_callback(lambda _: gateway.runtime.live.touch(key.rpartition(".")[0]))
    return taken


async def report_end(
    gateway: Gateway, invocation_id: str, token: str, state: Literal["completed", "failed"], error: str
) -> None:
    """How the runs of a delivery ended, from an engine that is not asked. The first report counts; a caller who still
    waits hears that there will be no answer."""
    key = await delivery_of_token(gateway, invocation_id, token)
    now = gateway.clock()
    reported = End(state, now, (error or "no reason was given")[:LONGEST_ERROR] if state == "failed" else "")
    endings = gateway.runtime.endings
    with endings.reported(key, reported) as end:
        written = await gateway.store.endings.note([], {key: end}, {}, now)
        if key in written.early:  # its start is just being written down
            endings.early(key, end)
            endings.news.set()
    if key in written.now:
        counter_of_ends(end.state).inc()
    row = await gateway.store.deliveries.get(key)
    if row is not None and row.deadline is not None and not row.answer_code:
        await gateway.store.deliveries.close_slot(key, _ANSWER_CODES[end.state])
        gateway.runtime.waiters.wake(key)
    gateway.runtime.live.touch(invocation_id)


async def delivery_of_token(gateway: Gateway, invocation_id: str, token: str) -> str:
    """The key of the invocation's delivery that was given this token."""
    found = await gateway.store.history.get(invocation_id)
    deliveries = [] if found is None else found.deliveries
    # Every delivery's token is compared, so that the time taken does not tell which invocations exist or were
    # replayed.
    matching = [one.key for one in deliveries if gateway.site.is_response_token(token, one.key)]
    if not matching:
        raise Refused("not_authenticated", "the response token is not that of this invocation")
    return matching[0]


async def await_answer(gateway: Gateway, delivery: Delivery, payload: bytes) -> Answer:
    """Start the workflow now and wait until it answers, ends without an answer, or the time is over."""
    start = _Start()
    watch = gateway.runtime.background(_start_and_watch(gateway, delivery, payload, start))
    try:
        return await _wait(gateway, delivery, watch)
    finally:
        start.awaited = False
        if start.over:
            watch.cancel()


LOOK_FOR_LISTENER = 0.25
"""Seconds. A listener may answer through another process, even through a command that nobody hears of."""


async def await_listener(gateway: Gateway, delivery: Delivery) -> Answer:
    """Wait for the answer of the listener that the call was handed to. When it goes away, the row says so."""
    return await _wait(gateway, delivery, None)


async def _wait(gateway: Gateway, delivery: Delivery, watch: "asyncio.Task[str | None] | None") -> Answer:
    assert delivery.deadline is not None
    # The deadline is a time of day, for the workflow and for other processes. The wait is counted by a clock
    # that nobody sets.
    allowed = delivery.deadline - delivery.created_at
    until = time.monotonic() + min(allowed, delivery.deadline - gateway.clock())
    woken = gateway.runtime.waiters.register(delivery.key)
    longest_pause = LOOK_FOR_LISTENER if watch is None else allowed
    if watch is not None:
        watch.add_done_callback(lambda _: woken.set())
    try:
        while True:
            left = until - time.monotonic()
            if left > 0:
                await woken.within(min(left, longest_pause, gateway.runtime.waiters.look_every))
            if woken.answer is not None:
                return answers.responded(woken.answer, delivery.invocation_id)
            ended = (
                watch.result()
                if watch and watch.done() and not watch.cancelled() and watch.exception() is None
                else None
            )
            woken.clear()
            over = until <= time.monotonic() or gateway.runtime.waiters.time_is_up
            answer = await _answer_in_row(gateway, delivery, ended, over)
            if answer is not None:
                return answer
    except StoreUnavailable:
        return answers.problem("temporarily_unavailable", delivery.invocation_id)
    finally:
        gateway.runtime.waiters.leave(delivery.key, woken)


class _Start(Struct):
    """A start that is under way when the caller's time is over must still be written down as what it became; after
    that nobody need wait for the end."""

    over: bool = False
    awaited: bool = True


async def _start_and_watch(gateway: Gateway, delivery: Delivery, payload: bytes, start: _Start) -> str | None:
    """How the runs ended, or None where nobody can say: then only an answer or the time-out ends the wait."""
    if gateway.engine is None:
        return None
    try:
        started = await start_delivery(gateway, delivery, payload)
        start.over = True
        if not start.awaited:
            return None
        if started.failed:
            return "failed"
        if started.runs == 0:
            return "completed"
        ended = await gateway.engine.ended(delivery.key)
        if isinstance(ended, End):
            gateway.runtime.endings.ended(delivery.key, ended)
            return ended.state
        if isinstance(ended, WorkflowResponse):
            await take_answer(gateway, delivery.key, ended)
            return None
        return ended
    except EngineUnavailable:
        gateway.runtime.due.set()  # the loop goes on trying; the caller may still be answered in time
        return None
    except EngineRejected:
        return "failed"
    except StoreUnavailable:
        raise
    except Exception:  # a defect in an engine: nobody else looks at how this task ended
        log.exception("an engine failed in a way it should not", engine=gateway.engine.name)
        return None


async def _answer_in_row(
    gateway: Gateway, delivery: Delivery, ended: str | None, over: bool
) -> Answer | None:
    """What the row says now. Closing the slot is a race against an answer just arriving, and the row settles
    it."""
    code = _ANSWER_CODES.get(ended or "") or ("response_timeout" if over else None)
    if code is not None and await gateway.store.deliveries.close_slot(delivery.key, code):
        gateway.runtime.live.touch(delivery.invocation_id)
        return _answer_for(code, delivery.invocation_id)
    row = await gateway.store.deliveries.get(delivery.key)
    if row is not None and row.answer_code:
        return answer_of(row)
    return None if code is None else _answer_for(code, delivery.invocation_id)


def answer_of(row: Delivery) -> Answer:
    if row.answer_code == "accepted" and row.response is not None:
        return answers.responded(row.response, row.invocation_id)
    return _answer_for(row.answer_code, row.invocation_id)


def _answer_for(code: str, invocation_id: str) -> Answer:
    return answers.completed(invocation_id) if code == "completed" else answers.problem(code, invocation_id)


async def await_first_answer(gateway: Gateway, webhook: Webhook, first_invocation_id: str) -> Answer:
    """A duplicate of a synchronous call hears what the first one heard, waiting for it while it is still
    running."""
    key = delivery_key(first_invocation_id, 1)
    woken = gateway.runtime.waiters.register(key)
    until = time.monotonic() + (webhook.answer_timeout or 0.0)
    try:
        while True:
            row = await gateway.store.deliveries.get(key)
            if row is None or (row.deadline is None and not row.answer_code):
                return answers.duplicate(first_invocation_id)
            if row.answer_code:
                return answer_of(row)
            if time.monotonic() > until or gateway.runtime.waiters.time_is_up:
                return _answer_for("response_timeout", first_invocation_id)
            await woken.within(gateway.runtime.waiters.look_every)
            if woken.answer is not None:
                return answers.responded(woken.answer, first_invocation_id)
            woken.clear()
    except StoreUnavailable:
        return answers.problem("temporarily_unavailable", first_invocation_id)
    finally:
        gateway.runtime.waiters.leave(key, woken)
