"""Replays of many calls: first a plan with a count, then a run in the background, until it is done or cancelled.

Any serving process goes on with it, under a lease, the oldest call first. It waits while many deliveries are queued, so
that new calls do not wait behind a month of history.
"""

from msgspec.structs import replace

from postern.core.access.accounts import Actor
from postern.core.deliveries.delivery import StartAgain
from postern.core.history.invocation import HistoryFilter, Story, payload_of
from postern.core.history.part import path_of
from postern.core.history.replay import Replay, Values
from postern.core.problems import Refused, existing, invalid
from postern.identity import new_id
from postern.usecases.access.audit import noted
from postern.usecases.answers import Listing, as_plain, first_page, page_size, shown
from postern.usecases.deliveries import views
from postern.usecases.history.history import fields_of_replay
from postern.usecases.history.rows import rows_of
from postern.usecases.runtime.gateway import Gateway, require
from postern.usecases.runtime.loop import Loop

MOST_CALLS = 100_000
STEP = 20
FIRST = 5
"""Calls that a plan shows."""
MOST_QUEUED = 200
LEASE = 30.0
CHECK_REPLAYS_EVERY = 1.0


async def plan(
    gateway: Gateway, actor: Actor, criteria: HistoryFilter, include_completed: bool = False
) -> views.Replay:
    """How many calls that would be. Later calls are not among them, completed ones only where that
    is asked for, and filtered ones where the filter names them."""
    require(actor, "write")
    if path_of(criteria) is not None:
        # A plan of 100,000 calls would read all their bodies, and again when it runs.
        name = "name a mapped one, like fieldOne=1001"
        raise invalid("filter.field", f"a replay cannot be planned by a value that is not mapped; {name}")
    now = gateway.clock()
    until = now + 0.001  # ids know milliseconds: what came in just now is part of it
    bounded = replace(criteria, until=until if criteria.until is None else min(criteria.until, until))
    total, completed = await gateway.store.replays.count(bounded, MOST_CALLS + 1)
    if total > MOST_CALLS:
        raise invalid("filter", f"finds more than {MOST_CALLS} calls; narrow it")
    count = total if include_completed else total - completed
    if total and criteria.webhook_id is not None:
        webhook = gateway.runtime.directory.by_id(criteria.webhook_id)
        if webhook is None:
            raise Refused("conflict", "the webhook of these calls has been deleted; restore it first")
        if not webhook.enabled:
            detail = "the webhook of these calls is disabled and starts nothing; enable it first"
            raise Refused("conflict", detail)
    plan = Replay(new_id("rpl"), "planned", bounded, count, completed, include_completed, now, actor.name)
    filter = as_plain(shown(views.ReplayedCalls, bounded))
    note = noted(gateway, actor, "replay planned", plan.id, filter=filter, count=count)
    await gateway.store.replays.add(plan, note)
    return await _shown(gateway, plan)


async def begin(gateway: Gateway, actor: Actor, replay_id: str, fields: Values = "recorded") -> views.Replay:
    """Start a planned replay of many. It runs in the background, in whichever process serves, the oldest call
    first, each from the first step of its workflow. The four fields of each call are as they were recorded
    when it was first started, or as the mapping finds them then."""
    require(actor, "write")
    replay = await _found(gateway, replay_id)
    note = noted(gateway, actor, "replay begun", replay_id, fields=fields)
    if not await gateway.store.replays.begin(replay_id, fields, actor.name, gateway.clock(), note):
        raise Refused("conflict", f"this replay is {replay.state}; a plan is run once")
    return await show(gateway, actor, replay_id)


async def cancel(gateway: Gateway, actor: Actor, replay_id: str) -> views.Replay:
    """The calls queued by then are started; the rest are not."""
    require(actor, "write")
    replay = await _found(gateway, replay_id)
    note = noted(gateway, actor, "replay cancelled", replay_id)
    if not await gateway.store.replays.end(replay_id, "cancelled", gateway.clock(), note):
        raise Refused("conflict", f"this replay is {replay.state} already")
    return await show(gateway, actor, replay_id)


async def show(gateway: Gateway, actor: Actor, replay_id: str) -> views.Replay:
    """One replay of many: its plan, how far it is, and what became of what it started."""
    require(actor, "read")
    return await _shown(gateway, await _found(gateway, replay_id))


async def _shown(gateway: Gateway, replay: Replay) -> views.Replay:
    if replay.state != "planned":
        return views.replay_of(replay, (await gateway.store.replays.outcomes([replay.id]))[replay.id])
    ids, _ = await gateway.store.replays.next_of(replay, FIRST, gateway.clock())
    stories = sorted(await gateway.store.history.some(ids), key=lambda story: story.invocation.id)
    return views.replay_of(replay, {}, await rows_of(gateway, stories))


async def listing(
    gateway: Gateway, actor: Actor, limit: int = 50, cursor: str | None = None
) -> Listing[views.Replay]:
    """The replays of many, newest first."""
    require(actor, "read")
    limit = page_size(limit)
    rows = await gateway.store.replays.page(limit + 1, cursor)
    page, next_cursor = first_page(rows, limit, lambda replay: replay.id)
    outcomes = await gateway.store.replays.outcomes([replay.id for replay in page])
    return Listing(
        items=[views.replay_of(replay, outcomes[replay.id]) for replay in page], next_cursor=next_cursor
    )


async def _found(gateway: Gateway, replay_id: str) -> Replay:
    return existing(await gateway.store.replays.get(replay_id), "there is no replay with this id")


# --- running ---------------------------------------------------------------------------------------------------------


async def step(gateway: Gateway, replay: Replay) -> Replay | None:
    """Queues the next few. Returns the replay as it is then, or None if nothing is left to do here."""
    now = gateway.clock()
    ids, position = await gateway.store.replays.next_of(replay, STEP, now)
    stories = {story.invocation.id: story for story in await gateway.store.history.brief(ids)}
    tries = [_start_of(gateway, stories[call_id], replay.fields) for call_id in ids if call_id in stories]
    starts = [start for start in tries if start is not None]
    skipped = len(ids) - len(starts)
    reached = position or (ids[-1] if ids else replay.position)
    if not await gateway.store.replays.step(replay, starts, skipped, reached, now, LEASE):
        return None
    if starts:
        gateway.runtime.starts_due()
        for start in starts:
            gateway.runtime.live.touch(start.invocation_id)
    if position is None:
        await gateway.store.replays.end(replay.id, "done", now)
        return None
    return replace(replay, position=position)


def _start_of(gateway: Gateway, story: Story, values: Values) -> StartAgain | None:
    """None if there is nothing to start: the webhook is disabled, it or the body is gone, or the call was divided or its values are damaged."""
    webhook = gateway.runtime.directory.by_id(story.invocation.webhook_id)
    payload = payload_of(story.invocation)
    if webhook is None or not webhook.enabled or payload is None:
        return None
    if story.deliveries and (story.deliveries[0].is_divided or story.deliveries[0].is_damaged):
        return None
    fields = fields_of_replay(webhook, story, payload, values)
    return webhook.started_again(story.invocation.id, payload, fields)


class Replayer:
    """Any number of processes may run one on the same database: a lease says whose turn it is."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._loop = Loop("replays", self.round, CHECK_REPLAYS_EVERY)
        self.run, self.stop = self._loop.run, self._loop.stop

    async def round(self) -> bool:
        """Goes on with one replay until nothing of it is left. Returns False if none is due."""
        gateway = self._gateway
        replay = await gateway.store.replays.claim(gateway.clock(), LEASE)
        if replay is None:
            return False
        left: Replay | None = replay
        while left is not None and not self._loop.stopping:
            webhook = gateway.runtime.directory.by_id(replay.wanted.webhook_id or "")
            lane = "" if webhook is None else webhook.lane
            if (await gateway.store.deliveries.backlog(gateway.clock(), lane))[0] >= MOST_QUEUED:
                await self._loop.rest(CHECK_REPLAYS_EVERY)
                # Renews the lease, and notices if the replay was cancelled.
                if not await gateway.store.replays.step(left, [], 0, left.position, gateway.clock(), LEASE):
                    return True
                continue
            left = await step(gateway, left)
        if left is not None:  # this process ends: the next one need not wait for the lease
            await gateway.store.replays.step(left, [], 0, left.position, gateway.clock(), 0.0)
        return True
