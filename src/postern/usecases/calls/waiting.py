"""A caller waits until there is an answer, all runs have ended, or the time is over. The delivery's row decides."""

import asyncio
import time

from postern.core import answer as answers
from postern.core.answer import CallerAnswer, WorkflowResponse
from postern.core.deliveries.delivery import End, EngineRejected, EngineUnavailable, Started, delivery_key
from postern.core.history.invocation import Delivery, StoreUnavailable
from postern.core.webhooks.webhook import Webhook
from postern.observe.logs import log
from postern.usecases.deliveries.starting import receiver_of, start_delivery, take_answer
from postern.usecases.ports import Engine
from postern.usecases.runtime.gateway import Gateway

CODE_OF_END = {"completed": "completed", "failed": "workflow_failed"}
"""The code that a caller who still waits hears when all runs have ended."""


async def await_answer(gateway: Gateway, delivery: Delivery, payload: bytes) -> CallerAnswer:
    engine = receiver_of(gateway, delivery)
    if engine is None:
        return await wait(gateway, delivery, None)
    # In the background: a start that is under way when the caller's time is over must still be written down.
    start = gateway.runtime.background(start_delivery(gateway, delivery, payload))
    ended = gateway.runtime.background(_ended(gateway, engine, delivery, start))
    try:
        return await wait(gateway, delivery, ended)
    finally:
        ended.cancel()


async def wait(gateway: Gateway, delivery: Delivery, runs: "asyncio.Task[str | None] | None") -> CallerAnswer:
    """``runs`` tells how the runs ended."""
    assert delivery.deadline is not None
    # The deadline is a time of day, for the workflow and other processes. Here a clock counts that nobody sets.
    allowed = delivery.deadline - delivery.created_at
    until = time.monotonic() + min(allowed, delivery.deadline - gateway.clock())
    waiters = gateway.runtime.waiters
    try:
        with waiters.waiting(delivery.key) as woken:
            if runs is not None:
                runs.add_done_callback(lambda _: woken.set())
            while True:
                left = until - time.monotonic()
                if left > 0:
                    await woken.within(min(left, waiters.look_every))
                if woken.answer is not None:
                    return answers.responded(woken.answer, delivery.invocation_id)
                woken.clear()
                ended = runs.result() if runs is not None and runs.done() else None
                over = until <= time.monotonic() or waiters.time_is_up
                answer = await _answer_in_row(gateway, delivery, ended, over)
                if answer is not None:
                    return answer
    except StoreUnavailable:
        return answers.problem("temporarily_unavailable", delivery.invocation_id)


async def _ended(
    gateway: Gateway, engine: Engine, delivery: Delivery, start: "asyncio.Task[Started]"
) -> str | None:
    """How the runs ended, or None if nobody knows: then only an answer or the time-out ends the wait."""
    try:
        started = await asyncio.shield(start)
        if started.failed:
            return "failed"
        if started.runs == 0:
            return "completed"
        ended = await engine.ended(delivery.key)
        if isinstance(ended, End):
            if ended.answer is not None:
                await take_answer(gateway, delivery.key, ended.answer)
            gateway.runtime.endings.ended(delivery.key, ended)
            return ended.state
        if isinstance(ended, WorkflowResponse):
            await take_answer(gateway, delivery.key, ended)
            return None
        return ended
    except EngineUnavailable:
        gateway.runtime.starts_due(
            delivery.lane
        )  # the loop goes on trying; the caller may still be answered in time
    except EngineRejected:
        return "failed"
    except StoreUnavailable:
        pass  # the next look at the row meets it too
    except Exception:  # a defect in an engine: nobody else looks at how this task ended
        log.exception("an engine raised an unexpected error", engine=engine.name)
    return None


async def _answer_in_row(
    gateway: Gateway, delivery: Delivery, ended: str | None, over: bool
) -> CallerAnswer | None:
    """The answer that the row has now, if any. It settles a race between closing the slot and an answer."""
    code = CODE_OF_END.get(ended or "") or ("response_timeout" if over else None)
    if code is not None and await gateway.store.slots.close_slot(delivery.key, code):
        gateway.runtime.live.touch(delivery.invocation_id)
        return _answer_for(code, delivery.invocation_id)
    row = await gateway.store.deliveries.get(delivery.key)
    if row is not None and row.answer_code:
        return answer_of(row)
    return None if code is None else _answer_for(code, delivery.invocation_id)


def answer_of(row: Delivery) -> CallerAnswer:
    if row.answer_code == "accepted" and row.response is not None:
        return answers.responded(row.response, row.invocation_id)
    return _answer_for(row.answer_code, row.invocation_id)


def _answer_for(code: str, invocation_id: str) -> CallerAnswer:
    if code == "completed":
        return answers.stored("completed", invocation_id)
    return answers.problem(code, invocation_id)


async def await_first_answer(gateway: Gateway, webhook: Webhook, first_invocation_id: str) -> CallerAnswer:
    """The answer to a duplicate of a synchronous call: what the first call hears. While that waits, this waits too."""
    key = delivery_key(first_invocation_id, 1)
    waiters = gateway.runtime.waiters
    until = time.monotonic() + (webhook.answer_timeout or 0.0)
    try:
        with waiters.waiting(key) as woken:
            while True:
                row = await gateway.store.deliveries.get(key)
                if row is None or (row.deadline is None and not row.answer_code):
                    return answers.stored("duplicate", first_invocation_id)
                if row.answer_code:
                    return answer_of(row)
                if time.monotonic() > until or waiters.time_is_up:
                    return _answer_for("response_timeout", first_invocation_id)
                await woken.within(waiters.look_every)
                if woken.answer is not None:
                    return answers.responded(woken.answer, first_invocation_id)
                woken.clear()
    except StoreUnavailable:
        return answers.problem("temporarily_unavailable", first_invocation_id)
