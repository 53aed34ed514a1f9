"""Retention: deletes what is old, in steps with pauses, so that callers do not notice."""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import Literal, TypeVar

import msgspec

from postern.core.access.accounts import Actor
from postern.core.deliveries.delivery import EngineRejected, EngineUnavailable
from postern.core.history.invocation import StoreUnavailable
from postern.core.operations.retention import DAY, REJECTED_BYTES, VOLUMES_KEPT, OwnRetention, RetentionPolicy
from postern.core.steady_clock import SteadyClock
from postern.identity import first_id_at
from postern.observe.logs import log
from postern.usecases.access.accounts import SESSION_IDLE
from postern.usecases.access.audit import note_down
from postern.usecases.answers import Time
from postern.usecases.history.history import recorded
from postern.usecases.runtime.gateway import Gateway, require
from postern.usecases.runtime.loop import Loop
from postern.usecases.webhooks import bin

PRUNE_EVERY = 600.0
FIRST_AFTER = 30.0
CHECK_AGES_EVERY = 15.0
SUM_EVERY = 300.0
STILL_GOING = ("running", "waiting", "sleeping")
REPORTED = ("invocations", "bodies", "rejected")
"""People ask about these. Everything else that is deleted had expired by itself."""

Report = Callable[[str, int], None]
FindOld = Callable[[str], Awaitable[list[str]]]
"""Finds the next ids to be deleted, after the given one."""
T = TypeVar("T")


def _nobody(_what: str, _so_far: int) -> None:
    pass


async def plan(gateway: Gateway, actor: Actor) -> dict[str, int]:
    """Count what pruning now would delete. Numbers may overlap: an old call that was rejected is counted as old."""
    require(actor, "admin")
    now, policy, store = gateway.clock(), gateway.retention, gateway.store.retention
    counts: Counter[str] = Counter(invocations=0, bodies=0, rejected=0)
    for webhook_id, own in (await store.webhooks()).items():
        history_before = policy.history_before(own, now)
        counts["invocations"] += await store.count_before(webhook_id, history_before)
        for name, before in _bodies_before(policy, own, now):
            done = await gateway.store.chores.reached(f"{name}:{webhook_id}")
            of_filtered = name == "filtered"
            counts["bodies"] += await store.count_bodies(
                webhook_id, history_before, before, done, of_filtered
            )
        counts["rejected"] += sum(map(len, await store.rejected_beyond(webhook_id, REJECTED_BYTES)))
    if policy.most_rows:
        counts["overTheCap"] = max(0, await store.count_rows() - policy.most_rows)
    return dict(counts)


async def prune(gateway: Gateway, actor: Actor, report: Report = _nobody) -> dict[str, int]:
    """Delete everything that is too old or too much. ``report`` is called after each step, with what was deleted
    and how many so far."""
    require(actor, "admin")
    done = await _prune(gateway, gateway.clock(), report)
    await note_down(gateway, actor, "history pruned", "history", **done)
    return done


async def _prune(gateway: Gateway, now: float, report: Report = _nobody) -> dict[str, int]:
    policy, store = gateway.retention, gateway.store.retention
    counts = Counter(invocations=0, bodies=0, rejected=0, expired=0, volumes=0, webhooks=0, engineCopies=0)

    def count(what: str, number: int) -> None:
        counts[what] += number
        report(what, counts[what])

    known = await store.webhooks()
    # First what is too old for every webhook, in the order on the disk: by webhook, every call would be on another page.
    oldest = min((policy.history_before(own, now) for own in known.values()), default=0.0)
    everywhere = partial(store.up_to, first_id_at("inv", oldest))
    await _delete_all(gateway, everywhere, partial(count, "invocations"))
    for webhook_id, own in known.items():
        too_old = partial(store.before, webhook_id, policy.history_before(own, now))
        await _delete_all(gateway, too_old, partial(count, "invocations"))
        count("rejected", await trim(gateway, webhook_id))
        for name, before in _bodies_before(policy, own, now):
            await _strip_all(gateway, name, webhook_id, before, partial(count, "bodies"))
        while number := await gently(store.forget_volumes(webhook_id, now - VOLUMES_KEPT)):
            count("volumes", number)
    last = await store.horizon(policy.most_rows) if policy.most_rows else None
    if last is not None:
        await _delete_all(gateway, partial(store.up_to, last), partial(count, "invocations"))
    while number := await gently(store.forget_volumes("", now - VOLUMES_KEPT)):
        count("volumes", number)
    while number := await gently(store.expire(now, now - SESSION_IDLE, policy.records_before(now))):
        count("expired", number)
    count("webhooks", await bin.empty(gateway))
    await _forget_copies(gateway, partial(count, "engineCopies"))
    summary = msgspec.json.encode(counts).decode()
    await gateway.store.chores.reach("pruned", "", gateway.clock(), summary)
    if any(counts[what] for what in REPORTED):
        await gateway.store.chores.reach("deleted", "", gateway.clock(), summary)
    return dict(counts)


class LastPruning(msgspec.Struct, frozen=True):
    history_days: int
    body_days: int | None
    most_rows: int | None
    pruned_at: Time | None
    deleted_at: Time | None
    deleted: dict[str, int] | None


def rule(gateway: Gateway, actor: Actor) -> RetentionPolicy:
    """The rule for webhooks without one of their own."""
    require(actor, "read")
    return gateway.retention


async def last(gateway: Gateway, actor: Actor) -> LastPruning:
    """The rule in force, when pruning last went round, and what was deleted the last time that anything was."""
    require(actor, "read")
    policy, chores = gateway.retention, gateway.store.chores
    pruned, deleted = await chores.last_done("pruned"), await chores.last_done("deleted")
    counts = msgspec.json.decode(deleted[1]) if deleted else {}
    return LastPruning(
        history_days=policy.history_days,
        body_days=policy.body_days,
        most_rows=policy.most_rows or None,
        pruned_at=None if pruned is None else Time(pruned[0]),
        deleted_at=None if deleted is None else Time(deleted[0]),
        deleted={name: counts[name] for name in REPORTED if name in counts} if deleted else None,
    )


async def kept_until(gateway: Gateway, actor: Actor, invocation_id: str) -> Time | None:
    """When a call will be deleted, by the rule in force now; None if that rule cannot be read. A cap on all calls or on
    rejected ones may delete it earlier."""
    require(actor, "read")
    story = await recorded(gateway, invocation_id)
    rule = await gateway.store.retention.own_rule(story.invocation.webhook_id)
    now = gateway.clock()
    before = gateway.retention.history_before(rule, now)
    return Time(story.invocation.received_at + now - before) if before else None


async def roll_up(gateway: Gateway) -> None:
    """Sums up the minutes that are over."""
    while await gently(gateway.store.volumes.roll_up(gateway.clock())):
        pass


async def write_counts(gateway: Gateway) -> None:
    """Writes the numbers of rejected calls that are not recorded into the volumes."""
    counted = gateway.runtime.rejections.take_counted()
    if not counted:
        return
    try:
        await gateway.store.volumes.count(counted, gateway.clock())
    except StoreUnavailable:
        gateway.runtime.rejections.put_back(counted)
        raise


async def trim(gateway: Gateway, webhook_id: str) -> int:
    """Deletes the rejected calls of a webhook for which there is no room. Returns how many."""
    store = gateway.store.retention
    steps = await store.rejected_beyond(webhook_id, REJECTED_BYTES)
    return sum([await gently(store.delete_rejected(ids, gateway.clock())) for ids in steps])


async def gently(step: Awaitable[T]) -> T:
    """Does one step, then pauses for as long as it took: deleting takes half of the writer's time at most."""
    began = time.perf_counter()
    result = await step
    await asyncio.sleep(time.perf_counter() - began)
    return result


async def _delete_all(gateway: Gateway, find: FindOld, count: Callable[[int], None]) -> None:
    after = ""
    while ids := await find(after):
        count(await gently(gateway.store.retention.delete(ids)))
        after = ids[-1]


def _bodies_before(
    policy: RetentionPolicy, own: OwnRetention | None, now: float
) -> list[tuple[Literal["bodies", "filtered"], float]]:
    """The moments before which bodies are taken away: of all calls, of filtered ones."""
    every, filtered = policy.bodies_before(own, now), policy.filtered_before(own, now)
    moments: list[tuple[Literal["bodies", "filtered"], float]] = []
    if every is not None:
        moments.append(("bodies", every))
    if filtered is not None:
        moments.append(("filtered", filtered))
    return moments


async def _strip_all(
    gateway: Gateway,
    which: Literal["bodies", "filtered"],
    webhook_id: str,
    moment: float,
    count: Callable[[int], None],
) -> None:
    """Goes on where the last round ended. Calls that are still to be started are looked at again in the next one."""
    store, chores, name = gateway.store.retention, gateway.store.chores, f"{which}:{webhook_id}"
    after, passed_over = await chores.reached(name), False
    while ids := await store.with_bodies(webhook_id, moment, after, which == "filtered"):
        number, first_kept = await gently(store.strip(ids))
        count(number)
        after = ids[-1]
        passed_over = passed_over or first_kept is not None
        if not passed_over:
            await chores.reach(name, after, gateway.clock())


async def _forget_copies(gateway: Gateway, count: Callable[[int], None]) -> None:
    """Has the engine delete its copies of what was deleted here. A run at work keeps its copy until it has ended."""
    if gateway.engine is None:
        return  # this is a command: the process that has the engine does it
    store, after = gateway.store.retention, ""
    try:
        while keys := await store.to_forget(after):
            after = keys[-1]
            ended = []
            for key in keys:
                runs = await gateway.engine.runs(20, key)
                if not any(run.state in STILL_GOING for run in runs or []):
                    ended.append(key)
            if ended:
                await gateway.engine.forget(ended)
                await gently(store.forgot(ended))
                count(len(ended))
    except (EngineUnavailable, EngineRejected) as trouble:
        # The keys stay noted, and the next round asks again.
        log.info("the engine could not be asked to forget what was deleted", error=trouble.detail)


def _is_due(now: float, at: float, every: float) -> bool:
    """Also if the time is so far away that only a wrong clock could have set it."""
    return now >= at or now < at - every


class RetentionLoop:
    """Sums up and prunes now and then, in one process at a time, and trims at once if rejected calls pile up."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._next_look = gateway.clock() + FIRST_AFTER
        self._next_sum = 0.0
        self._clock = SteadyClock()
        self._loop = Loop("retention", self.round, CHECK_AGES_EVERY, gateway.runtime.rejections.any_full.wait)

    async def run(self) -> None:
        try:
            await self._loop.run()
        finally:
            with suppress(StoreUnavailable):
                await write_counts(self._gateway)

    async def round(self) -> None:
        await write_counts(self._gateway)
        for webhook_id in self._gateway.runtime.rejections.take():
            await trim(self._gateway, webhook_id)
        now = self._gateway.clock()
        trusted = await self._is_trusted(now)
        if _is_due(now, self._next_sum, SUM_EVERY):
            await roll_up(self._gateway)
            self._next_sum = now + SUM_EVERY
        if not trusted or not _is_due(now, self._next_look, PRUNE_EVERY / 2):
            return
        self._next_look = now + PRUNE_EVERY / 2
        if await self._gateway.store.chores.my_turn("prune", now, PRUNE_EVERY):
            # Without an entry in the audit log, which would get one every ten minutes.
            done = await _prune(self._gateway, now)
            if any(done.values()):
                log.info("pruned", **done)

    async def _is_trusted(self, now: float) -> bool:
        gateway, kept = self._gateway, ""
        last = await gateway.store.chores.last_done("pruned")
        trusted = self._clock.trusts(now, monotonic(), None if last is None else last[0])
        days = 0.0 if last is None else (now - last[0]) / DAY
        if not trusted and days >= 1:
            before = gateway.retention.history_before(OwnRetention(), now)
            if await gateway.store.retention.up_to(first_id_at("inv", before), ""):
                kept = f"by the clock {days:.0f} days have gone by since they were last looked for. If that is right, they are deleted in an hour"
        gateway.runtime.kept_for_now, gateway.runtime.clock_is_trusted = kept, trusted and last is not None
        return trusted
