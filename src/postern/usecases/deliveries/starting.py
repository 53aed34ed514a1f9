"""One start: asks the engine, and writes down the result."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace

from postern.core.answer import WorkflowResponse
from postern.core.deliveries.delivery import (
    GIVE_UP_AFTER,
    MOST_NOT_FOUND,
    End,
    EngineRejected,
    EngineUnavailable,
    Original,
    Started,
    Trigger,
    wait_before_retry,
)
from postern.core.history.invocation import NO_PAYLOAD, Delivery, StoreUnavailable
from postern.core.webhooks.target import original_of
from postern.observe.logs import log
from postern.observe.metrics import Numbers, counter_of_starts
from postern.usecases.ports import Engine
from postern.usecases.runtime.gateway import Gateway
from postern.usecases.runtime.process import EngineAway, Runtime

START_TIMEOUT = 20.0
SETTLE_EVERY = 0.5
SETTLE_WITHIN = 900.0
"""Seconds that the result of a start waits for the store to come back, before the start is left to its lease."""
AWAY_FOR_LONG = 15.0
"""Seconds. After a shorter absence of the engine, what was tried meanwhile is due soon by itself."""
ONE_ALONE = 600.0
"""Seconds after a start was taken, in which the engine counts as there although it refuses those of one workflow."""


async def start_delivery(gateway: Gateway, delivery: Delivery, payload: bytes) -> Started:
    """Raises what the engine has raised, after writing it down."""
    engine, webhook = receiver_of(gateway, delivery), gateway.runtime.directory.by_id(delivery.webhook_id)
    if webhook is not None:
        delivery.lane = webhook.lane  # where it waits from now on, as its webhook is set now
    if engine is None:
        trouble = EngineUnavailable("this gateway has no engine" if webhook else "its webhook is not served")
        await _taken_later(gateway, "", delivery, trouble)
        raise trouble
    began = time.perf_counter()
    try:
        target, original = webhook.target if webhook is not None else None, None
        if target is not None and target.forward == "original":
            original = await _as_it_came(gateway, delivery.invocation_id)
        started = await _ask(gateway, engine, delivery, payload, original)
    except EngineUnavailable as trouble:
        counter_of_starts(engine.name, "unavailable").inc()
        await _taken_later(gateway, engine.name, delivery, trouble)
        raise
    except EngineRejected as refusal:
        counter_of_starts(engine.name, "rejected").inc()
        _is_there(gateway.runtime, delivery.lane)
        await fail(gateway, delivery, refusal.detail)
        if refusal.answer is not None:
            await take_answer(gateway, delivery.key, refusal.answer)
        raise
    counter_of_starts(engine.name, "started").inc()
    Numbers.engine_start_seconds.observe(time.perf_counter() - began)
    _is_there(gateway.runtime, delivery.lane)
    gateway.runtime.lane(delivery.lane).took_at = time.monotonic()
    await _taken(gateway, delivery, started, engine.asked_after)
    return started


def receiver_of(gateway: Gateway, delivery: Delivery) -> Engine | None:
    """Finds what takes a webhook's deliveries: its own target, or the engine. None: this process has none, or the webhook is gone and
    had a lane of its own."""
    directory = gateway.runtime.directory
    webhook = directory.by_id(delivery.webhook_id)
    if webhook is None or webhook.target is None:
        return gateway.engine if webhook is not None or not delivery.lane else None
    if gateway.outbound.target is None:
        return None
    return gateway.outbound.target(webhook.id, webhook.target, directory.by_id)


async def _as_it_came(gateway: Gateway, invocation_id: str) -> Original:
    call = await gateway.store.history.call(invocation_id)
    if call is None or call.body is None:
        raise EngineRejected(NO_PAYLOAD)
    return original_of(call.method, call.query, call.header_pairs, call.body)


async def _ask(
    gateway: Gateway, engine: Engine, delivery: Delivery, payload: bytes, original: Original | None
) -> Started:
    site, invocation_id, key = gateway.site, delivery.invocation_id, delivery.key
    if (
        engine is not gateway.engine
    ):  # a target may be anywhere, also where the embedded engine is on this machine
        site = replace(site, callback_url=site.base_url)
    slot = None
    if delivery.deadline is not None:
        slot = site.response_slot(invocation_id, key, delivery.deadline)
    end_slot = site.end_slot(invocation_id, key) if engine.asked_after is None else None
    trigger = Trigger(
        key,
        delivery.webhook_id,
        invocation_id,
        delivery.fields,
        payload,
        slot,
        end_slot,
        delivery.traceparent,
        original,
    )
    try:
        async with asyncio.timeout(START_TIMEOUT):
            return await engine.start(trigger)
    except TimeoutError:
        silent = f"the engine did not answer within {START_TIMEOUT:g} s"
        raise EngineUnavailable(silent, may_run=True) from None
    except (EngineUnavailable, EngineRejected):
        raise
    except Exception as error:  # a defect in an engine must not end the loop
        log.exception("an engine raised an unexpected error", engine=engine.name)
        raise EngineUnavailable(f"internal: {type(error).__name__}") from error


async def _taken(gateway: Gateway, delivery: Delivery, started: Started, asked_after: float | None) -> None:
    now = gateway.clock()
    since = now if started.at is None else min(started.at, now)
    ask_at = None if asked_after is None or started.runs == 0 else now + asked_after
    await _settle(
        gateway, delivery, lambda: gateway.store.deliveries.started(delivery, started, since, ask_at)
    )
    if started.answer is not None:
        await take_answer(gateway, delivery.key, started.answer)
    if started.failed:
        gateway.runtime.endings.ended(delivery.key, End("failed", now, started.failed))
    gateway.runtime.live.touch(delivery.invocation_id)


async def _taken_later(
    gateway: Gateway, receiver: str, delivery: Delivery, trouble: EngineUnavailable
) -> None:
    now, detail, runtime = gateway.clock(), trouble.detail, gateway.runtime
    lane = runtime.lane(delivery.lane)
    if not trouble.only_this or time.monotonic() - lane.took_at > ONE_ALONE:
        at = time.monotonic()
        earlier = lane.away or EngineAway(at, detail, at)
        lane.away = EngineAway(earlier.since, detail, max(earlier.not_before, at + trouble.retry_after))
    is_old = now - (delivery.released_at or delivery.created_at) > GIVE_UP_AFTER
    said = [*(attempt.get("detail", "") for attempt in delivery.log), detail][-MOST_NOT_FOUND:]
    is_nowhere = trouble.not_found and all(text.startswith(trouble.not_found) for text in said)
    after = f"{MOST_NOT_FOUND} tries in a row" if is_nowhere and len(said) == MOST_NOT_FOUND else ""
    if after or (is_old and runtime.clock_is_trusted):
        counter_of_starts(receiver, "given_up").inc()
        await fail(gateway, delivery, f"given up after {after or '3 days'}: {detail}")
        return
    next_at = now + wait_before_retry(delivery.attempts + 1, trouble.retry_after)
    await _settle(
        gateway,
        delivery,
        lambda: gateway.store.deliveries.again(delivery, next_at, detail, now, trouble.may_run),
    )
    gateway.runtime.live.touch(delivery.invocation_id)


def _is_there(runtime: Runtime, name: str) -> None:
    lane = runtime.lane(name)
    now, away = time.monotonic(), lane.away
    lane.away = None
    # An engine that takes one start and not the next was not away: then each delivery waits for its own time.
    if away is not None and now - away.since >= AWAY_FOR_LONG and now >= away.not_before:
        lane.back.set()
        if name:
            runtime.starts_due(name)


async def fail(gateway: Gateway, delivery: Delivery, why: str) -> None:
    now = gateway.clock()
    await _settle(gateway, delivery, lambda: gateway.store.deliveries.failed(delivery, why, now))
    gateway.runtime.live.touch(delivery.invocation_id)


async def _settle(gateway: Gateway, delivery: Delivery, write: Callable[[], Awaitable[None]]) -> None:
    """Writes down the result of a start, and tries again while the store is away: what the engine has taken must not be
    started again. It stays among the starts under way, so there are never more than a few hundred."""
    until = time.monotonic() + SETTLE_WITHIN
    tries = 0
    try:
        while True:
            try:
                await write()
                return
            except StoreUnavailable as trouble:
                if time.monotonic() > until:
                    raise
                if not tries:
                    log.warning(
                        "a start could not be recorded yet", delivery=delivery.key, error=str(trouble)
                    )
                tries += 1
                gateway.runtime.unsettled[delivery.key] = tries
            await asyncio.sleep(SETTLE_EVERY)
    finally:
        gateway.runtime.unsettled.pop(delivery.key, None)
        if delivery.at_work:
            gateway.runtime.starts_due(delivery.lane)  # the next in turn may go


def take_answer(gateway: Gateway, key: str, answer: WorkflowResponse) -> "asyncio.Future[bool]":
    """Keeps an answer if it is the first one in time. Not a coroutine: the writer wakes the caller without a task between."""

    def written(taken: asyncio.Future[bool]) -> None:
        if not taken.cancelled() and taken.exception() is None and taken.result():
            gateway.runtime.waiters.wake(key, answer)

    taken = gateway.store.slots.respond(
        key, answer, gateway.clock(), awaited_here=key in gateway.runtime.waiters
    )
    taken.add_done_callback(written)
    return taken
