"""A second chance for rejected calls that the current settings would let in. Each event is started once, however often its
sender tried, and also where the webhook has no duplicate protection."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace as changed
from hashlib import sha256
from itertools import islice

import msgspec
from msgspec.structs import replace

from postern.core.access.accounts import Actor
from postern.core.admit import admit as judge
from postern.core.admit import admit_fetched, admit_head
from postern.core.deliveries.delivery import delivery_key
from postern.core.history.invocation import Delivery, Entry, Invocation
from postern.core.limits import Limits
from postern.core.problems import PROBLEMS, Gone, Refused, invalid
from postern.core.verdict import NEVER_READ, Verdict
from postern.core.webhooks.webhook import DuplicateKey, Webhook
from postern.stores.deliveries.emissions import Attempt
from postern.usecases.access.audit import noted
from postern.usecases.calls import views
from postern.usecases.calls.receive import entry_of
from postern.usecases.history.history import recorded
from postern.usecases.runtime.gateway import Gateway, require
from postern.usecases.stored_webhook import served

MOST_ADMITTED = 1_000
"""Events that are started at once."""
MOST_JUDGED = 20_000
PORTION, PORTION_BYTES = 200, 8 * 1024 * 1024
TOGETHER = 20
"""Calls that are admitted in one commit, so that genuine calls wait for a short one only."""
MOST_NAMED = 20
LEFT_FOR = 5.0
"""Seconds for which a finished check waits for the page that asks how far it has come."""
FIRST_ELEMENTS = 20
LONGEST_HISTORY = 3_650 * 86_400.0
DAY = 24 * 60
RESULTS: dict[views.Standing, views.Result] = {
    "starts": "admitted",
    "still_rejected": "still_rejected",
    "cannot_be_admitted": "cannot_be_admitted",
    "came_again": "left_out",
}


class Judged(msgspec.Struct):
    """What would become of a rejected call now, and why nothing would."""

    invocation: Invocation
    standing: views.Standing
    reason: str = ""
    code: str = ""
    verdict: Verdict | None = None
    event: list[bytes] = []
    """By one of these another attempt at the same event is recognized."""
    accepted_as: str = ""


class FoundSoFar:
    """What was found of a webhook's rejected calls so far, the oldest first."""

    def __init__(self, webhook: Webhook | None) -> None:
        self.webhook = webhook
        self.judged = self.calls = self.events = self.came_again = 0
        self.all_judged = False
        self.passing: list[views.Passing] = []
        self.again: list[views.CameAgain] = []
        self.because: dict[views.Standing, dict[str, views.Why]] = {
            "still_rejected": {},
            "cannot_be_admitted": {},
        }
        self.task: asyncio.Task[None]
        self._seen: dict[bytes, views.Passing] = {}

    def add(self, one: Judged) -> None:
        self.judged += 1
        match one.standing:
            case "starts":
                self._add_attempt(one)
            case "came_again":
                self.came_again += 1
                if len(self.again) < MOST_ADMITTED:
                    self.again.append(views.CameAgain(one.invocation.id, one.accepted_as))
            case standing:
                reason = _lower(PROBLEMS[one.code].title) if one.code in PROBLEMS else one.reason
                why = self.because[standing].setdefault(reason, views.Why(reason, 0, []))
                why.calls += 1
                if len(why.invocation_ids) < MOST_NAMED:
                    why.invocation_ids.append(one.invocation.id)

    def _add_attempt(self, one: Judged) -> None:
        self.calls += 1
        known = next((self._seen[key] for key in one.event if key in self._seen), None)
        if known is None:
            assert one.verdict is not None
            known = views.Passing(one.invocation.id, one.invocation.code, one.verdict.fields, 0)
            self.events += 1
            if len(self.passing) < MOST_ADMITTED:
                self.passing.append(known)
        known.attempts += 1
        for key in one.event:
            self._seen.setdefault(key, known)

    def number(self, standing: views.Standing) -> int:
        return sum(why.calls for why in self.because[standing].values())

    @property
    def at_least(self) -> str:
        return "" if self.all_judged else "at least "

    @property
    def counted(self) -> str:
        """Like *at least 606 calls, 102 events*."""
        events = f", {_number(self.events, 'event')}" if self.events != self.calls else ""
        return f"{self.at_least}{_number(self.calls, 'call')}{events}"

    def in_words(self) -> list[str]:
        """The three numbers, each with its reasons, and what else is to be known."""
        told = [_sentence(f"{self.counted} would start now")]
        for standing, words in (
            ("still_rejected", "would still be rejected"),
            ("cannot_be_admitted", "cannot be admitted"),
        ):
            why = sorted(self.because[standing].values(), key=lambda one: -one.calls)  # type: ignore[index]
            reasons = "; ".join(f"{one.reason} ({one.calls:,})" for one in why)
            number = f"{self.at_least}{_number(self.number(standing), 'call')}"  # type: ignore[arg-type]
            told.append(_sentence(f"{number} {words}{': ' if why else ''}{reasons}"))
        if self.came_again:
            told.append(
                f"{_number(self.came_again, 'call')} came again and {_were(self.came_again)} accepted: nothing to admit."
            )
        if self.calls and self.webhook is not None and self.webhook.duplicates is None:
            told.append(
                "Duplicate protection is off: calls with the same delivery id or the same body count as one event here, and"
                " what the sender still sends again by itself starts its workflow once more."
            )
        return told


async def recheck(gateway: Gateway, actor: Actor, webhook_id: str) -> views.Recheck:
    """What would become of a webhook's rejected calls with its current settings, each at the time it was received: what would
    start now, what would still be rejected, and what cannot be admitted, with the reasons. Nothing is started."""
    return await recheck_within(gateway, actor, webhook_id)


async def recheck_within(
    gateway: Gateway, actor: Actor, webhook_id: str, seconds: float | None = None
) -> views.Recheck:
    """What has been found after these seconds; whoever asks again hears how it has gone on."""
    require(actor, "read")
    found_so_far, ended = await _looked_through(gateway, webhook_id, seconds)
    not_kept = await _not_kept(gateway, webhook_id)
    told = found_so_far.in_words()
    if not_kept:
        told.append(
            f"{_number(not_kept, 'rejected call')} {_were(not_kept)} counted and not kept: ask the sender to send again."
        )
    return views.Recheck(
        webhook_id=webhook_id,
        judged=found_so_far.judged,
        all_judged=found_so_far.all_judged,
        under_way=not ended,
        calls=found_so_far.calls,
        events=found_so_far.events,
        counted=found_so_far.counted,
        would_pass=found_so_far.passing,
        came_again=found_so_far.again,
        still_rejected=found_so_far.number("still_rejected"),
        still_rejected_because=list(found_so_far.because["still_rejected"].values()),
        cannot_be_admitted=found_so_far.number("cannot_be_admitted"),
        cannot_because=list(found_so_far.because["cannot_be_admitted"].values()),
        not_kept=not_kept,
        in_words=told,
    )


async def standing(gateway: Gateway, actor: Actor, invocation_id: str) -> tuple[views.Standing, str]:
    """What would become of a rejected call now, and the reason why nothing would."""
    require(actor, "read")
    _, one = await _stored(gateway, invocation_id)
    return one.standing, one.reason


async def admit(gateway: Gateway, actor: Actor, invocation_ids: list[str]) -> views.Admitted:
    """Start rejected calls that pass now. What has been started meanwhile, in whatever way, is left alone."""
    require(actor, "write")
    if len(invocation_ids) > MOST_ADMITTED:
        raise invalid("invocationIds", f"at most {MOST_ADMITTED} at once")
    results: dict[str, views.Admission] = {}
    for invocation_id in sorted(set(invocation_ids)):  # the oldest attempt at an event is the one that starts
        webhook, one = await _stored(gateway, invocation_id)
        results[invocation_id] = await _admit_one(gateway, actor, webhook, one)
    return _told(gateway, [results[one] for one in dict.fromkeys(invocation_ids)], Counter())


async def admit_all(
    gateway: Gateway, actor: Actor, webhook_id: str, expected: int | None = None
) -> views.Admitted:
    """Start each event of a webhook's rejected calls that pass now, the oldest first and a thousand at once; refused where it
    is another number of events than was expected."""
    require(actor, "write")
    if expected is not None:
        found_so_far, _ = await _looked_through(gateway, webhook_id)
        if found_so_far.events != expected:
            detail = f"{found_so_far.counted} would start now, and {_number(expected, 'event')} were expected: check them again"
            raise Refused("conflict", detail)
    results: list[views.Admission] = []
    others = Counter[views.Result]()
    started, more = 0, False
    async for webhook, portion in _portions(gateway, webhook_id):
        passing = iter([one for one in portion if one.standing == "starts"])
        while not more and (some := list(islice(passing, TOGETHER))):
            # In this order and in one commit: of two attempts the older one starts.
            done = await asyncio.gather(*(_admit_one(gateway, actor, webhook, one) for one in some))
            results += done
            started += sum(one.admitted for one in done)
            more = started >= MOST_ADMITTED or len(results) >= MOST_JUDGED
        others.update(RESULTS[one.standing] for one in portion if one.standing != "starts")
        if more:
            break
    return _told(gateway, results, others, more)


def _told(
    gateway: Gateway, results: list[views.Admission], others: Counter[views.Result], more: bool = False
) -> views.Admitted:
    gateway.runtime.due.set()
    gateway.runtime.rechecks.clear()  # what they have found is not so any more
    for one in results:
        if one.admitted:
            gateway.runtime.live.touch(one.invocation_id)
    number = Counter(one.result for one in results) + others
    admitted, left_out = number["admitted"], number["left_out"]
    told = [
        f"{admitted:,} admitted{', and there are more: admit once more' if more else ''}.",
        f"{_number(number['still_rejected'], 'call')} would still be rejected.",
        f"{_number(number['cannot_be_admitted'], 'call')} cannot be admitted.",
    ]
    if left_out:
        told.append(
            f"{_number(left_out, 'call')} left out: other attempts at what was admitted, or came again."
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


async def _admit_one(gateway: Gateway, actor: Actor, webhook: Webhook | None, one: Judged) -> views.Admission:
    invocation, verdict = one.invocation, one.verdict

    def not_admitted(reason: str, result: views.Result = "left_out") -> views.Admission:
        return views.Admission(invocation_id=invocation.id, admitted=False, result=result, reason=reason)

    if one.standing != "starts" or webhook is None or verdict is None:
        return not_admitted(one.reason, RESULTS[one.standing])
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
        elements.append(element)
    key, state = delivery_key(invocation.id, 1), webhook.first_state
    delivery = Delivery(
        key, invocation.id, webhook.id, 1, state, 0, now, verdict.fields, now, asked_by=actor.name
    )
    own_key = verdict.duplicate_key if webhook.duplicates else None
    entry = Entry(invocation, delivery, own_key, until, others=elements)
    note = noted(gateway, actor, "rejected call admitted", invocation.id)
    try:
        # Nothing is awaited before: those that are admitted together are written in their order. Other attempts came before
        # now, so they are gone when as much time has passed as any history goes back.
        admitted = await gateway.store.emissions.admit(entry, one.event, now + LONGEST_HISTORY, note)
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
            for one in portion:
                found_so_far.add(one)
            if found_so_far.judged >= MOST_JUDGED:
                return
        found_so_far.all_judged = True
    finally:
        asyncio.get_running_loop().call_later(LEFT_FOR, forget)


async def _portions(gateway: Gateway, webhook_id: str) -> AsyncIterator[tuple[Webhook | None, list[Judged]]]:
    """Judges a webhook's rejected calls, the oldest first."""
    served(gateway, webhook_id)
    after = ""
    while found := await gateway.store.history.rejected(webhook_id, after, PORTION, PORTION_BYTES):
        after = found[-1].id
        webhook = gateway.runtime.directory.by_id(webhook_id)
        yield webhook, await _judged(gateway, webhook, found)


async def _stored(gateway: Gateway, invocation_id: str) -> tuple[Webhook | None, Judged]:
    story = await recorded(gateway, invocation_id)
    webhook = gateway.runtime.directory.by_id(story.invocation.webhook_id)
    if story.deliveries and story.invocation.outcome == "rejected":
        return webhook, Judged(story.invocation, "came_again", "it has been admitted before")
    (one,) = await _judged(gateway, webhook, [story.invocation])
    return webhook, one


async def _judged(gateway: Gateway, webhook: Webhook | None, found: list[Invocation]) -> list[Judged]:
    """Judges calls of one webhook, the oldest first."""
    # Where nothing is protected, an event is recognized as protection does by default, or by its body.
    asked = changed(webhook, duplicates=webhook.duplicates or DuplicateKey(0)) if webhook else None
    protected = webhook is not None and webhook.duplicates is not None
    judged = []
    for invocation in found:
        await asyncio.sleep(0)  # callers are answered while many are judged
        judged.append(await _judge(gateway, asked, invocation))
    starting = [one for one in judged if one.standing == "starts"]
    claimed: list[tuple[Invocation, list[bytes]]] = []
    for one in starting:
        own = [one.verdict.duplicate_key] if one.verdict and one.verdict.duplicate_key else []
        body = [] if protected and own else [sha256(one.invocation.body or b"").digest()]
        one.event = [sha256(b"admitted\0" + key).digest() for key in own + body]
        claimed.append((one.invocation, one.event + (own if protected else [])))
    again = await gateway.store.history.came_again([one.invocation for one in starting])
    before = await gateway.store.emissions.came_before(claimed)
    for one in starting:
        if accepted := again.get(one.invocation.id) or await _elements_again(gateway, one):
            _left_out(one, f"the sender sent it again, and it was accepted as {accepted}", accepted)
        elif first := before.get(one.invocation.id):
            _left_out(one, f"it is another attempt at the event of {first}, which came in", first)
    return judged


def _left_out(one: Judged, reason: str, accepted: str) -> None:
    one.standing, one.reason, one.accepted_as = "came_again", reason, accepted


async def _elements_again(gateway: Gateway, one: Judged) -> str:
    """The accepted call that brought an array's first element again, if its next ones came again too."""
    assert one.verdict is not None
    first = ""
    for part, _ in one.verdict.elements[:FIRST_ELEMENTS]:
        element = replace(one.invocation, body=part.body, body_size=len(part.body))
        found = (await gateway.store.history.came_again([element])).get(element.id, "")
        if not found:
            return ""
        first = first or found
    return first


async def _judge(gateway: Gateway, webhook: Webhook | None, invocation: Invocation) -> Judged:
    """Judges a call with the current settings, at the time of its receipt."""

    def cannot(reason: str) -> Judged:
        return Judged(invocation, "cannot_be_admitted", reason)

    if webhook is None:
        return cannot("its webhook has been deleted")
    if not webhook.enabled:
        return Judged(invocation, "still_rejected", "its webhook is disabled and starts nothing")
    if reason := _cannot_be_judged(invocation):
        return cannot(reason)
    verdict = await _verdict_now(gateway, webhook, invocation)
    match verdict.outcome:
        case "accepted":
            return Judged(invocation, "starts", verdict=verdict)
        case "handshake" | "preflight":
            return cannot("it is a set-up handshake of the sender, which starts no workflow")
        case "rejected" if webhook.method == "token" and PROBLEMS[verdict.code].status == 401:
            return cannot("its token was masked and cannot be checked again")
        case "rejected":
            return Judged(invocation, "still_rejected", verdict.detail, verdict.code)


async def _verdict_now(gateway: Gateway, webhook: Webhook, invocation: Invocation) -> Verdict:
    call = invocation.as_call(gateway.site.base_url)
    step = invocation.steps[:1]
    if step and step[0][0] == "schedule":
        return admit_fetched(webhook, call, step[0])
    if turned_away := admit_head(webhook, call):
        return turned_away
    # With unused limits: the call has come already, and must not slow down others.
    verdict = judge(webhook, call, Limits(lambda: 0.0))
    if webhook.credential.fetches_keys:
        key_sets = gateway.runtime.key_sets
        call.fetched = key_sets.look(webhook.credential.keys_at(call))
        verdict = judge(webhook, call, Limits(lambda: 0.0))
        if verdict.wanted and await key_sets.wait(verdict.wanted, webhook.id):
            call.fetched = key_sets.at_hand
            verdict = judge(webhook, call, Limits(lambda: 0.0))
    return verdict


def _cannot_be_judged(invocation: Invocation) -> str:
    """The reason, or an empty text if it can."""
    if invocation.outcome != "rejected":
        return "it was not rejected"
    if invocation.code == "fetch_failed":
        return "nobody sent it: a schedule could not fetch it"
    if invocation.code == "method_not_allowed":
        return "only POST starts a workflow"
    if invocation.body is None and invocation.code in NEVER_READ:
        return "its body was never read"
    if invocation.body is None:
        return "its body is no longer kept"
    return ""


async def _not_kept(gateway: Gateway, webhook_id: str) -> int:
    """How many rejected calls, in the time that the history goes back, were counted only, and so cannot be admitted."""
    now = gateway.clock()
    since = gateway.retention.history_before(await gateway.store.retention.own_rule(webhook_id), now)
    first, until = int(since // 60), int(now // 60) + 1
    found = await gateway.store.volumes.buckets(webhook_id, first, until, DAY)
    by_code = Counter[str]()
    for volume in found.values():
        by_code.update(volume.unkept.by_name)
    return sum(count for code, count in by_code.items() if code != "method_not_allowed")


def _number(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _were(count: int) -> str:
    return "was" if count == 1 else "were"
