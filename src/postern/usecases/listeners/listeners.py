"""Listeners: they enter, ask for calls, and say what their programs answered. A listener is never connected to, so it needs no
public address. Its row is a lease, which asking renews."""

import asyncio
import contextlib
from typing import Annotated

from msgspec.structs import replace
from pydantic import Field

from postern.core.access.accounts import Actor
from postern.core.access.audit import AuditEntry
from postern.core.answer import InvalidResponse, WorkflowResponse, response_of_http
from postern.core.deliveries.delivery import invocation_of_key
from postern.core.listeners import LEASE, AlreadyAnswered, GoneListener, Handed, Listener
from postern.core.problems import Refused, existing, invalid
from postern.identity import new_id
from postern.observe.metrics import counter_of_ends
from postern.usecases.access.audit import noted
from postern.usecases.answers import Time, iso, shown
from postern.usecases.deliveries.starting import take_answer
from postern.usecases.history.history import recorded, request_in
from postern.usecases.history.views.calls import LocalRun, run_of
from postern.usecases.listeners import views
from postern.usecases.runtime.gateway import Gateway, require
from postern.usecases.runtime.loop import Loop
from postern.usecases.shapes import Shape, decoded
from postern.usecases.stored_webhook import served

ASK_EVERY = 4.0
"""Seconds that asking for calls waits at most: two of them fit into a lease."""
RENEW_AFTER = 2.0
LONGEST_ANSWER = 1_500_000
MOST_LISTENERS = 200
MOST_OF_ONE = 20
NOT_THERE = "there is no such listener any more: it was ended, or was not heard of for too long"


class EnterRequest(Shape):
    name: Annotated[str, Field(min_length=1, max_length=80)]
    """The listener's name for itself, like ada@thinkpad."""
    answers: Annotated[str, Field(max_length=40)] | None = None
    """The webhook whose calls it answers in the place of the workflow. One listener at a time can."""


class AskRequest(Shape):
    known: Annotated[list[Annotated[str, Field(max_length=40)]], Field(max_length=500)] = []
    """Calls that the listener is at work on."""
    wait_seconds: Annotated[float, Field(ge=0, le=ASK_EVERY)] = ASK_EVERY


class LocalAnswer(Shape):
    """What the listener's program answered; ``error`` where it gave none."""

    status: Annotated[int, Field(ge=100, le=999)] | None = None
    headers: Annotated[
        list[Annotated[list[str], Field(min_length=2, max_length=2)]], Field(max_length=200, repr=False)
    ] = []
    body_base64: Annotated[str, Field(max_length=LONGEST_ANSWER)] = Field(default="", repr=False)
    ms: Annotated[float, Field(ge=0, le=86_400_000)] = 0.0
    error: Annotated[str, Field(max_length=1000)] = ""


async def enter(gateway: Gateway, actor: Actor, request: EnterRequest, address: str = "") -> views.Entered:
    """Be there as a listener from now on, for as long as one goes on asking for calls. With ``answers`` the webhook's
    calls are answered by this listener and no workflow is started for them."""
    require(actor, "read" if request.answers is None else "write")
    if not request.name.isprintable() or not request.name.strip():
        raise invalid("name", "may hold printable characters only")
    if request.answers is not None:
        _check_can_be_answered(gateway, request.answers)
    await sweep(gateway)
    # Without those that were ended: their rows stay for a while, so that they can be told why.
    present = [one for one in await gateway.store.listeners.all() if one.ended_by is None]
    if len(present) >= MOST_LISTENERS or sum(_is_own(actor, one) for one in present) >= MOST_OF_ONE:
        raise Refused("rate_limited", "Too many listeners are there; end one first.", retry_after=10)
    now = gateway.clock()
    listener = Listener(
        new_id("lsn"),
        request.name.strip(),
        actor.id,
        actor.name,
        address[:80],
        now,
        now + LEASE,
        request.answers,
    )
    note = None
    if listener.answers is not None:
        note = noted(gateway, actor, "listener answers", listener.answers, listener=listener.name)
    try:
        await gateway.store.listeners.enter(listener, note)
    except AlreadyAnswered as taken:
        said = f"Somebody answers this webhook already: {held_by(taken.holder)}. "
        said += f"{taken.holder.id} can be ended with `postern listeners end`."
        raise Refused("conflict", said) from None
    await refresh(gateway)
    return shown(views.Entered, listener, by=listener.owner, ask_within=LEASE)


async def listing(gateway: Gateway, actor: Actor) -> list[views.Listener]:
    """Each `postern listen` that is connected now, the oldest first."""
    require(actor, "read")
    return [views.listener_of(one) for one in await _present(gateway)]


async def ask(gateway: Gateway, actor: Actor, listener_id: str, request: AskRequest) -> views.HandedCalls:
    """The calls that are there for a listener; where there are none, the answer comes when there are, or
    after a moment. Asking says that it is still there. What it was given and has not answered it is given
    again, unless it says that it knows it."""
    require(actor, "read")
    listener = await _own(gateway, actor, listener_id)
    await _check_may_go_on(gateway, actor, listener)
    now = gateway.clock()
    if listener.lease_until - now < LEASE - RENEW_AFTER and not await gateway.store.listeners.renew(
        listener_id, now + LEASE
    ):
        raise Refused("not_found", NOT_THERE)
    clock = asyncio.get_running_loop().time
    until = clock() + request.wait_seconds
    known = set(request.known)
    with gateway.runtime.listeners.waiting(listener_id) as news:
        while True:
            woken = news.is_set()  # for a call, or because it was ended, which it hears when it asks again
            news.clear()
            under_way = await gateway.store.listeners.under_way(listener_id)
            calls = [one for one in under_way if one.id not in known]
            left = until - clock()
            if calls or woken or left <= 0 or gateway.runtime.listeners.closed:
                return views.HandedCalls(calls=[await _with_request(gateway, one) for one in calls])
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(left, gateway.runtime.waiters.look_every)):
                    await news.wait()


async def answer(
    gateway: Gateway, actor: Actor, listener_id: str, handed_id: str, request: LocalAnswer
) -> views.Taken:
    """What a listener's program answered a call that it was handed. Where its caller waits, that hears it,
    under the rules for a workflow's answer, which needs the access level write."""
    require(actor, "read")
    listener = await _own(gateway, actor, listener_id)
    call = await gateway.store.listeners.one_handed(handed_id)
    if call is None or call.listener_id != listener.id:
        raise Refused("not_found", "this call was not handed to this listener")
    if call.delivery_key is not None:
        require(actor, "write")  # access may have changed since the listener entered
    body = decoded(request.body_base64, "bodyBase64")
    response: WorkflowResponse | None = None
    error = " ".join(request.error.replace("\0", " ").split())  # a database's text has no NUL
    if not error and request.status is None:
        error = "there was no answer"
    if call.delivery_key is not None and not error:
        assert request.status is not None
        headers = [(name, value) for name, value in request.headers]
        try:
            response = response_of_http(request.status, headers, body)
        except InvalidResponse as wrong:
            error = f"its answer cannot be sent: {wrong}"
    took, now = round(request.ms * 1000), gateway.clock()
    ended = replace(call, ended_at=now, status=request.status, duration_us=took, error=error[:1000])
    taken = await _end(gateway, ended, response)
    gateway.runtime.live.touch(call.invocation_id)
    return taken


async def end(gateway: Gateway, actor: Actor, listener_id: str) -> None:
    """A listener is there no more; from now on the engine is given its webhook's calls again. Of those that
    it has not answered, the callers hear that the workflow has failed. Somebody else's needs the access level
    write."""
    require(actor, "read")
    listener = existing(await gateway.store.listeners.get(listener_id), NOT_THERE)
    if not _is_own(actor, listener):
        require(actor, "write")
    if listener.ended_by is not None:
        raise Refused("not_found", NOT_THERE)
    await _end_it(gateway, actor, listener)


async def replay(gateway: Gateway, actor: Actor, listener_id: str, invocation_id: str) -> LocalRun:
    """Send one recorded call to a listener's program. No workflow is started; how its program answered is
    shown at the call, under `localRuns`."""
    require(actor, "write")
    invocation = (await recorded(gateway, invocation_id)).invocation
    if invocation.body_is_gone or invocation.body_is_cut:
        raise Refused("conflict", "the call's body is not kept whole")
    present = {one.id: one for one in await _present(gateway)}
    listener = existing(present.get(listener_id), NOT_THERE)
    call = Handed(
        new_id("hnd"),
        invocation_id,
        listener.id,
        listener.name,
        listener.owner,
        gateway.clock(),
        asked_by=actor.name,
    )
    note = noted(gateway, actor, "replayed to a listener", invocation_id, listener=listener.name)
    if not await gateway.store.listeners.hand(call, note):
        raise Refused("not_found", NOT_THERE)
    gateway.runtime.listeners.wake(listener.id)
    gateway.runtime.live.touch(invocation_id)
    return run_of(call)


# --- for the processes that serve ------------------------------------------------------------------------------------


async def sweep(gateway: Gateway) -> bool:
    """Ends the listeners that have not been heard of. Returns whether there were any."""
    now = gateway.clock()
    listed = await gateway.store.listeners.all()
    for one in listed:
        if one.ended_by is None and one.lease_until > now + 2 * LEASE:  # the clock was set back since
            await gateway.store.listeners.renew(one.id, now + LEASE)
    if all(one.lease_until > now for one in listed):
        return False
    gone = await gateway.store.listeners.sweep(now, lambda one: _ran_out(gateway, one))
    await _end_waits(gateway, gone)
    return bool(gone)


async def refresh(gateway: Gateway) -> None:
    gateway.runtime.listeners.take_in(await gateway.store.listeners.all())


async def answering(gateway: Gateway) -> dict[str, views.Listener]:
    """The listeners that answer calls, by webhook."""
    return {one.answers: views.listener_of(one) for one in await _present(gateway) if one.answers}


def held_by(listener: Listener) -> str:
    where = f" from {listener.address}" if listener.address else ""
    return f"{listener.name} ({listener.owner}{where}) answers its calls since {iso(listener.since)}"


def _ran_out(gateway: Gateway, listener: Listener) -> AuditEntry | None:
    if listener.answers is None:
        return None
    gone = Actor(listener.owner, "write", listener.owner_id)
    return noted(
        gateway, gone, "listener was not heard of any more", listener.answers, listener=listener.name
    )


async def _end_it(gateway: Gateway, actor: Actor, listener: Listener, by: str | None = None) -> None:
    """``by``: whom the listener is told to have ended it. None: the actor."""
    note = None
    if listener.answers is not None or not _is_own(actor, listener):
        subject = listener.answers or listener.id
        note = noted(gateway, actor, "listener ended", subject, listener=listener.name)
    gone = await gateway.store.listeners.end(listener, by or actor.name, gateway.clock(), note)
    if gone is not None:
        await _end_waits(gateway, [gone])
    gateway.runtime.listeners.wake(listener.id)
    await refresh(gateway)


async def _end_waits(gateway: Gateway, gone: list[GoneListener]) -> None:
    for key in (key for one in gone for key in one.unanswered):
        counter_of_ends("failed").inc()
        await gateway.store.slots.close_slot(key, "workflow_failed")
        gateway.runtime.waiters.wake(key)
        gateway.runtime.live.touch(invocation_of_key(key))


async def _present(gateway: Gateway) -> list[Listener]:
    now = gateway.clock()
    return [one for one in await gateway.store.listeners.all() if one.is_there(now)]


def _is_own(actor: Actor, listener: Listener) -> bool:
    return (actor.id, actor.name) == (listener.owner_id, listener.owner)


async def _own(gateway: Gateway, actor: Actor, listener_id: str) -> Listener:
    listener = await gateway.store.listeners.get(listener_id)
    if listener is None or not _is_own(actor, listener):
        raise Refused("not_found", NOT_THERE)
    if listener.ended_by is not None:
        raise Refused("conflict", f"{listener.ended_by} has ended this listener")
    return listener


def _check_can_be_answered(gateway: Gateway, webhook_id: str) -> None:
    if served(gateway, webhook_id).answer_timeout is None:
        instead = "switch on the synchronous response first, or listen without --answer"
        raise Refused("conflict", f"its callers do not wait for an answer: {instead}")


async def _check_may_go_on(gateway: Gateway, actor: Actor, listener: Listener) -> None:
    """Ends the listener if settings or access have changed so that it may not answer any more."""
    if listener.answers is None:
        return
    try:
        require(actor, "write")
        _check_can_be_answered(gateway, listener.answers)
    except Refused as refused:
        because = refused.detail or refused.problem.title.lower()
        await _end_it(gateway, actor, listener, f"the gateway ({because})")
        raise


async def _with_request(gateway: Gateway, call: Handed) -> views.HandedCall:
    story = await recorded(gateway, call.invocation_id)
    delivery = next((one for one in story.deliveries if one.key == call.delivery_key), None)
    return views.HandedCall(
        id=call.id,
        kind="replay" if call.delivery_key is None else "answer",
        until=Time.maybe(delivery.deadline if delivery else None),
        asked_by=call.asked_by,
        request=request_in(gateway, story),
    )


async def _was_taken_before(gateway: Gateway, key: str, response: WorkflowResponse) -> bool:
    """Whether this answer was taken already. A listener that did not hear so sends it again."""
    row = await gateway.store.deliveries.get(key)
    return row is not None and row.answer_code == "accepted" and row.response == response


async def _end(gateway: Gateway, ended: Handed, response: WorkflowResponse | None) -> views.Taken:
    key = ended.delivery_key
    if key is None:
        known = not await gateway.store.listeners.ended(ended)
        return views.Taken(heard=False, detail="this was told before" if known else "")
    in_time = response is not None and (
        await take_answer(gateway, key, response) or await _was_taken_before(gateway, key, response)
    )
    if await gateway.store.listeners.ended(ended):
        counter_of_ends("failed" if ended.error else "completed").inc()
    if response is None:
        if await gateway.store.slots.close_slot(key, "workflow_failed"):
            gateway.runtime.waiters.wake(key)
            return views.Taken(heard=False, detail=f"{ended.error}; the caller heard 502")
        return views.Taken(heard=False, detail=ended.error)
    late = "too late: the caller had heard something else by then"
    return views.Taken(heard=in_time, detail="" if in_time else late)


LOOK_EVERY = 1.0


class ListenersLoop:
    """Takes in listeners that came through another process, and ends those that have died."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        loop = Loop("listeners", self._work, LOOK_EVERY, gateway.runtime.listeners.changed.wait)
        self.run, self.stop = loop.run, loop.stop

    async def _work(self) -> None:
        self._gateway.runtime.listeners.changed.clear()
        await sweep(self._gateway)
        await refresh(self._gateway)
