"""A second chance for rejected calls that the current settings would let in. None is started twice."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator

from postern.core.access.accounts import Actor
from postern.core.admit import admit as judge
from postern.core.admit import admit_head
from postern.core.calls.content import RECORDED, UnreadableContent, read_object
from postern.core.deliveries.delivery import delivery_key
from postern.core.history.invocation import Delivery, Entry, HistoryFilter, Invocation
from postern.core.limits import Limits
from postern.core.problems import PROBLEMS, Gone, Refused, invalid
from postern.core.verdict import NEVER_READ, Verdict
from postern.core.webhooks.webhook import Webhook
from postern.usecases.access.audit import noted
from postern.usecases.calls import views
from postern.usecases.calls.receive import entry_of
from postern.usecases.history.history import recorded
from postern.usecases.runtime.gateway import Gateway, require
from postern.usecases.stored_webhook import served

MOST_RECHECKED = 1_000
PAGE = 100
DAY = 24 * 60


async def recheck(gateway: Gateway, actor: Actor, webhook_id: str) -> views.Recheck:
    """Which rejected calls of a webhook would be accepted with its current settings, at the time they were
    received: the oldest of them if there are very many, and which of them its sender has sent again and had
    accepted meanwhile. Nothing is started."""
    require(actor, "read")
    passing, again, failing = [], [], 0
    async for invocation in _rejected(gateway, webhook_id):
        await asyncio.sleep(0)  # callers are answered while many are judged
        webhook = gateway.runtime.directory.by_id(invocation.webhook_id)
        verdict = _verdict_now(webhook, invocation, gateway.site.base_url)
        if isinstance(verdict, str):
            failing += 1
        elif retried := await gateway.store.history.same_body(invocation):
            again.append(views.CameAgain(invocation_id=invocation.id, accepted_as=retried))
        else:
            passing.append(
                views.Passing(invocation_id=invocation.id, code=invocation.code, fields=verdict.fields)
            )
    # Oldest first, so that admitted calls are started in the order in which they came.
    return views.Recheck(
        webhook_id=webhook_id,
        would_pass=passing[::-1][:MOST_RECHECKED],
        came_again=again[::-1],
        still_rejected=failing,
        not_kept=await _not_kept(gateway, webhook_id),
    )


async def admit(gateway: Gateway, actor: Actor, invocation_ids: list[str]) -> views.Admitted:
    """Start rejected calls that pass now. What has been started meanwhile, in whatever way, is left alone."""
    require(actor, "write")
    if len(invocation_ids) > MOST_RECHECKED:
        raise invalid("invocationIds", f"at most {MOST_RECHECKED} at once")
    results = []
    for invocation_id in invocation_ids:
        invocation = (await recorded(gateway, invocation_id)).invocation
        results.append(await _admit_one(gateway, actor, invocation))
    gateway.runtime.due.set()
    for one in results:
        if one.admitted:
            gateway.runtime.live.touch(one.invocation_id)
    return views.Admitted(items=results, admitted=sum(one.admitted for one in results))


async def admit_all(
    gateway: Gateway, actor: Actor, webhook_id: str, expected: int | None = None
) -> views.Admitted:
    """Start all rejected calls of a webhook that pass now, the oldest first; refused where it is another number than was
    expected."""
    require(actor, "write")
    passing = (await recheck(gateway, actor, webhook_id)).would_pass
    if expected is not None and expected != len(passing):
        detail = f"{len(passing)} calls pass now, and {expected} were expected: check them again"
        raise Refused("conflict", detail)
    return await admit(gateway, actor, [one.invocation_id for one in passing])


async def may_pass(gateway: Gateway, actor: Actor, invocation_id: str) -> bool:
    """Whether some change of the settings could let this rejected call in, so that checking it again makes sense."""
    require(actor, "read")
    invocation = (await recorded(gateway, invocation_id)).invocation
    webhook = gateway.runtime.directory.by_id(invocation.webhook_id)
    # A token is masked in what is recorded: where one is asked for, no recorded call has it.
    if webhook is None or webhook.method == "token" or _cannot_be_judged(invocation):
        return False
    return not isinstance(read_object(invocation.as_call(), RECORDED), UnreadableContent)


async def _admit_one(gateway: Gateway, actor: Actor, invocation: Invocation) -> views.Admission:
    def not_admitted(reason: str) -> views.Admission:
        return views.Admission(invocation_id=invocation.id, admitted=False, reason=reason)

    webhook = gateway.runtime.directory.by_id(invocation.webhook_id)
    verdict = _verdict_now(webhook, invocation, gateway.site.base_url)
    if isinstance(verdict, str):
        return not_admitted(verdict)
    assert webhook is not None  # or there was no verdict
    retried = await gateway.store.history.same_body(invocation)
    if retried is not None:
        return not_admitted(f"the sender sent it again, and it was accepted as {retried}")
    now = gateway.clock()
    until = now + webhook.duplicates.window_seconds if webhook.duplicates else 0.0
    elements = []
    for part, judged in verdict.elements:
        element = entry_of(gateway, webhook, part, judged)
        element.duplicate_until = until
        if element.delivery is not None:
            element.delivery.asked_by = actor.name
        elements.append(element)
    key, state = delivery_key(invocation.id, 1), webhook.first_state
    delivery = Delivery(
        key, invocation.id, webhook.id, 1, state, 0, now, verdict.fields, now, asked_by=actor.name
    )
    entry = Entry(invocation, delivery, verdict.duplicate_key, until, others=elements)
    note = noted(gateway, actor, "rejected call admitted", invocation.id)
    try:
        admitted = await gateway.store.emissions.admit(entry, note)
    except Gone:
        return not_admitted("retention has taken it just now")
    if isinstance(admitted, Delivery):
        return views.Admission(
            invocation_id=invocation.id, admitted=True, reason="", delivery_key=admitted.key
        )
    return not_admitted(
        "it has been admitted before" if admitted is None else f"it is a duplicate of {admitted}"
    )


def _verdict_now(webhook: Webhook | None, invocation: Invocation, base_url: str) -> Verdict | str:
    """The verdict under the current settings at the time of receipt, or the reason why the call is still rejected."""
    if webhook is None:
        return "its webhook has been deleted"
    if not webhook.enabled:
        return "its webhook is disabled and starts nothing"
    if reason := _cannot_be_judged(invocation):
        return reason
    call = invocation.as_call(base_url)
    # With unused limits: the call has come already, and must not slow down others.
    verdict = admit_head(webhook, call) or judge(webhook, call, Limits(lambda: 0.0))
    match verdict.outcome:
        case "accepted":
            return verdict
        case "handshake" | "preflight":
            return "it is a set-up handshake of the sender, which starts no workflow"
        case "rejected" if webhook.method == "token" and PROBLEMS[verdict.code].status == 401:
            return "its credential was masked and cannot be checked again"
        case "rejected":
            return verdict.detail


def _cannot_be_judged(invocation: Invocation) -> str:
    """The reason, or an empty text if it can."""
    if invocation.outcome != "rejected":
        return "it was not rejected"
    if invocation.code in NEVER_READ or invocation.body is None:
        return "its body was never read"
    return ""


async def _rejected(gateway: Gateway, webhook_id: str) -> AsyncIterator[Invocation]:
    """Yields the newest first."""
    served(gateway, webhook_id)
    wanted, before = HistoryFilter(webhook_id=webhook_id, status="rejected"), None
    while True:
        page = await gateway.store.history.page(wanted, PAGE, before)
        ids = [row.invocation.id for row in page.rows]
        whole = {one.invocation.id: one.invocation for one in await gateway.store.history.brief(ids)}
        for id in ids:
            if id in whole:
                yield whole[id]
        before = page.next_before
        if before is None:
            return


async def _not_kept(gateway: Gateway, webhook_id: str) -> int:
    """How many rejected calls, in the time that the history goes back, were counted only, and so cannot be admitted."""
    now = gateway.clock()
    since = gateway.retention.history_before(await gateway.store.retention.own_rule(webhook_id), now)
    first, until = int(since // 60), int(now // 60) + 1
    found = await gateway.store.volumes.buckets(webhook_id, first, until, DAY)
    by_code = Counter[str]()
    for volume in found.values():
        by_code.update(volume.unkept.by_name)
    return sum(count for code, count in by_code.items() if code not in NEVER_READ)
