"""A second chance for rejected calls that the current settings would let in. Each event is started once, however often its
sender tried, and also where the webhook has no duplicate protection."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from itertools import islice

from postern.core.access.accounts import Actor
from postern.core.deliveries.delivery import delivery_key
from postern.core.history.invocation import Delivery, Entry
from postern.core.problems import Gone, Refused, invalid
from postern.core.watch.alarms import ADMITTED
from postern.core.webhooks.webhook import Webhook
from postern.stores.deliveries.emissions import Attempt
from postern.usecases.access.audit import noted
from postern.usecases.answers import shown
from postern.usecases.calls import views
from postern.usecases.calls.found import MOST_ADMITTED, FoundSoFar, number_of
from postern.usecases.calls.judging_again import Judged, judged_now, judged_of
from postern.usecases.calls.receive import entry_of
from postern.usecases.runtime.gateway import Gateway, require
from postern.usecases.stored_webhook import served

MOST_JUDGED = 20_000
PORTION, PORTION_BYTES = 200, 8 * 1024 * 1024
TOGETHER = 20
"""Calls that are admitted in one commit, so that genuine calls wait for a short one only."""
LEFT_FOR = 5.0
"""Seconds for which a finished check waits for the page that asks how far it has come."""
LONGEST_HISTORY = 3_650 * 86_400.0
DAY = 24 * 60
RESULTS: dict[views.AdmissionStanding, views.Result] = {
    "starts": "admitted",
    "still_rejected": "still_rejected",
    "cannot_be_admitted": "cannot_be_admitted",
    "came_again": "left_out",
}


async def recheck(gateway: Gateway, actor: Actor, webhook_id: str) -> views.Recheck:
    """Check a webhook's rejected calls with its current settings, each at the time it was received: which would
    start now, which would still be rejected, and which cannot be admitted, with the reasons. Nothing is started."""
    return await recheck_within(gateway, actor, webhook_id)


async def recheck_within(
    gateway: Gateway, actor: Actor, webhook_id: str, seconds: float | None = None
) -> views.Recheck:
    """The findings after these seconds; to ask again says how it has gone on."""
    require(actor, "read")
    found_so_far, ended = await _looked_through(gateway, webhook_id, seconds)
    not_kept = await _not_kept(gateway, webhook_id)
    told = found_so_far.in_words()
    if not_kept:
        told.append(
            f"{number_of(not_kept, 'rejected call')} {'was' if not_kept == 1 else 'were'} counted and not kept: ask the sender to send again."
        )
    return shown(
        views.Recheck,
        found_so_far,
        webhook_id=webhook_id,
        under_way=not ended,
        would_pass=found_so_far.passing,
        came_again=found_so_far.again,
        still_rejected=found_so_far.number("still_rejected"),
        still_rejected_because=list(found_so_far.because["still_rejected"].values()),
        cannot_be_admitted=found_so_far.number("cannot_be_admitted"),
        cannot_because=list(found_so_far.because["cannot_be_admitted"].values()),
        not_kept=not_kept,
        in_words=told,
    )


async def standing(gateway: Gateway, actor: Actor, invocation_id: str) -> tuple[views.AdmissionStanding, str]:
    """Say what would become of a rejected call now, with the reason if it would not start."""
    require(actor, "read")
    _, call = await judged_of(gateway, invocation_id)
    return call.standing, call.reason


async def admit(gateway: Gateway, actor: Actor, invocation_ids: list[str]) -> views.Admitted:
    """Start rejected calls that pass now. Calls that have been started meanwhile, in whatever way, are left alone."""
    require(actor, "write")
    if len(invocation_ids) > MOST_ADMITTED:
        raise invalid("invocationIds", f"at most {MOST_ADMITTED} at once")
    results: dict[str, views.Admission] = {}
    for invocation_id in sorted(set(invocation_ids)):  # the oldest attempt at an event is the one that starts
        webhook, call = await judged_of(gateway, invocation_id)
        results[invocation_id] = await _admit_one(gateway, actor, webhook, call)
    return _told(gateway, [results[call_id] for call_id in dict.fromkeys(invocation_ids)], Counter())


async def admit_all(
    gateway: Gateway, actor: Actor, webhook_id: str, expected: int | None = None
) -> views.Admitted:
    """Start each event of a webhook's rejected calls that pass now, the oldest first and a thousand at once; refused where it
    is another number of events than was expected."""
    require(actor, "write")
    if expected is not None:
        found_so_far, _ = await _looked_through(gateway, webhook_id)
        if found_so_far.events != expected:
            detail = f"{found_so_far.counted} would start now, and {number_of(expected, 'event')} were expected: check them again"
            raise Refused("conflict", detail)
    results: list[views.Admission] = []
    others = Counter[views.Result]()
    started, more = 0, False
    async for webhook, portion in _portions(gateway, webhook_id):
        passing = iter([call for call in portion if call.standing == "starts"])
        while not more and (some := list(islice(passing, TOGETHER))):
            # In this order and in one commit: of two attempts the older one starts.
            done = await asyncio.gather(*(_admit_one(gateway, actor, webhook, call) for call in some))
            results += done
            started += sum(admission.admitted for admission in done)
            more = started >= MOST_ADMITTED or len(results) >= MOST_JUDGED
        others.update(RESULTS[call.standing] for call in portion if call.standing != "starts")
        if more:
            break
    told = _told(gateway, results, others, more)
    if told.admitted and not (more or told.still_rejected or told.cannot_be_admitted):
        await _close_incident(gateway, webhook_id)
    return told


async def _close_incident(gateway: Gateway, webhook_id: str) -> None:
    """Nothing of what was rejected is left."""
    store = gateway.store.incidents
    for incident in await store.open():
        if (incident.webhook_id, incident.kind) == (webhook_id, "rejected"):
            await store.close(incident.id, gateway.clock(), ADMITTED)
    gateway.runtime.incidents = await store.open()


def _told(
    gateway: Gateway, results: list[views.Admission], others: Counter[views.Result], more: bool = False
) -> views.Admitted:
    gateway.runtime.starts_due()
    gateway.runtime.rechecks.clear()  # what they have found is not so any more
    for admission in results:
        if admission.admitted:
            gateway.runtime.live.touch(admission.invocation_id)
    number = Counter(admission.result for admission in results) + others
    admitted, left_out = number["admitted"], number["left_out"]
    told = [
        f"{admitted:,} admitted{', and there are more: admit once more' if more else ''}.",
        f"{number_of(number['still_rejected'], 'call')} would still be rejected.",
        f"{number_of(number['cannot_be_admitted'], 'call')} cannot be admitted.",
    ]
    if left_out:
        told.append(
            f"{number_of(left_out, 'call')} left out: other attempts at what was admitted, or came again."
        )
    return views.Admitted(
        items=results,
        admitted=admitted,
        left_out=left_out,
        still_rejected=number["still_rejected"],
        cannot_be_admitted=number["cannot_be_admitted"],
        more=more,
        in_words=told,
    )


async def _admit_one(
    gateway: Gateway, actor: Actor, webhook: Webhook | None, call: Judged
) -> views.Admission:
    invocation, verdict = call.invocation, call.verdict

    def not_admitted(reason: str, result: views.Result = "left_out") -> views.Admission:
        return views.Admission(invocation_id=invocation.id, admitted=False, result=result, reason=reason)

    if call.standing != "starts" or webhook is None or verdict is None:
        return not_admitted(call.reason, RESULTS[call.standing])
    now = gateway.clock()
    until = now + webhook.duplicates.window_seconds if webhook.duplicates else 0.0
    elements = []
    for part, judged in verdict.elements:
        element = entry_of(gateway, webhook, part, judged)
        element.duplicate_until = until
        # Nobody heard an answer to an element: the array's caller heard one.
        element.invocation.status, element.invocation.duration_us = invocation.status, invocation.duration_us
        if element.delivery is not None:
            element.delivery.asked_by = actor.name
            element.delivery.turn = webhook.asked_turn(judged.turn)
        elements.append(element)
    key, state = delivery_key(invocation.id, 1), webhook.first_state
    delivery = Delivery(
        key,
        invocation.id,
        webhook.id,
        1,
        state,
        0,
        now,
        verdict.fields,
        now,
        asked_by=actor.name,
        lane=webhook.lane,
        turn=webhook.asked_turn(verdict.turn),
    )
    own_key = verdict.duplicate_key if webhook.duplicates else None
    entry = Entry(invocation, delivery, own_key, until, others=elements)
    note = noted(gateway, actor, "rejected call admitted", invocation.id)
    try:
        # Nothing is awaited before: those that are admitted together are written in their order. Other attempts came before
        # now, so they are gone when as much time has passed as any history goes back.
        admitted = await gateway.store.emissions.admit(entry, call.event, now + LONGEST_HISTORY, note)
    except Gone:
        return not_admitted("retention has taken it just now", "cannot_be_admitted")
    match admitted:
        case Delivery():
            return views.Admission(invocation.id, True, "admitted", "", admitted.key)
        case Attempt():
            return not_admitted(f"it is another attempt at the event of {admitted.of}, which was admitted")
        case None:
            return not_admitted("it has been admitted before")
        case first:
            return not_admitted(f"it is a duplicate of {first}")


async def _looked_through(
    gateway: Gateway, webhook_id: str, seconds: float | None = None
) -> tuple[FoundSoFar, bool]:
    """All who ask at the same time share one look. Returns what it has found, and whether it has ended."""
    served(gateway, webhook_id)
    rechecks, webhook = gateway.runtime.rechecks, gateway.runtime.directory.by_id(webhook_id)
    found_so_far: FoundSoFar = rechecks.get(webhook_id) or FoundSoFar(None)
    if found_so_far.webhook is not webhook or webhook is None:
        found_so_far = rechecks[webhook_id] = FoundSoFar(webhook)
        found_so_far.task = gateway.runtime.background(_look_through(gateway, webhook_id, found_so_far))
    await asyncio.wait([found_so_far.task], timeout=seconds)
    if found_so_far.task.done():
        if rechecks.get(webhook_id) is found_so_far:
            del rechecks[webhook_id]
        found_so_far.task.result()
    return found_so_far, found_so_far.task.done()


async def _look_through(gateway: Gateway, webhook_id: str, found_so_far: FoundSoFar) -> None:
    def forget() -> None:
        if gateway.runtime.rechecks.get(webhook_id) is found_so_far:
            del gateway.runtime.rechecks[webhook_id]

    try:
        async for _, portion in _portions(gateway, webhook_id):
            for call in portion:
                found_so_far.add(call)
            if found_so_far.judged >= MOST_JUDGED:
                return
        found_so_far.all_judged = True
    finally:
        asyncio.get_running_loop().call_later(LEFT_FOR, forget)


async def _portions(gateway: Gateway, webhook_id: str) -> AsyncIterator[tuple[Webhook | None, list[Judged]]]:
    """Judges a webhook's rejected calls, the oldest first."""
    served(gateway, webhook_id)
    after = ""
    while calls := await gateway.store.history.rejected(webhook_id, after, PORTION, PORTION_BYTES):
        after = calls[-1].id
        webhook = gateway.runtime.directory.by_id(webhook_id)
        yield webhook, await judged_now(gateway, webhook, calls)


async def _not_kept(gateway: Gateway, webhook_id: str) -> int:
    """How many rejected calls, in the time that the history goes back, were counted only, and so cannot be admitted."""
    now = gateway.clock()
    since = gateway.retention.history_before(await gateway.store.retention.own_rule(webhook_id), now)
    first, until = int(since // 60), int(now // 60) + 1
    by_day = await gateway.store.volumes.buckets(webhook_id, first, until, DAY)
    by_code = Counter[str]()
    for volume in by_day.values():
        by_code.update(volume.unkept.by_name)
    return sum(count for code, count in by_code.items() if code != "method_not_allowed")
