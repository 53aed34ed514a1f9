"""Listeners: they enter, ask for calls, and say what their programs answered. A listener is never connected to, so it needs no
public address. Its row is a lease, which asking renews."""

import asyncio
import contextlib
from typing import Annotated

from msgspec.structs import replace
from pydantic import Field

from postern.core.access.accounts import Actor
from postern.core.listeners import LEASE, Listener, ListenerCall
from postern.core.problems import Refused, existing, invalid
from postern.identity import new_id
from postern.usecases.access.audit import noted
from postern.usecases.answers import shown
from postern.usecases.history.history import recorded, request_in
from postern.usecases.history.views.calls import LocalRun, run_of
from postern.usecases.listeners import views
from postern.usecases.runtime.gateway import Gateway, require
from postern.usecases.runtime.loop import Loop
from postern.usecases.shapes import Shape

ASK_EVERY = 4.0
"""Seconds that asking for calls waits at most: two of them fit into a lease."""
RENEW_AFTER = 2.0
MOST_LISTENERS = 200
MOST_OF_ONE = 20
NOT_THERE = "there is no such listener any more: it was ended, or was not heard of for too long"


class EnterRequest(Shape):
    name: Annotated[str, Field(min_length=1, max_length=80)]
    """The listener's name for itself, like ada@thinkpad."""


class AskRequest(Shape):
    known: Annotated[list[Annotated[str, Field(max_length=40)]], Field(max_length=500)] = []
    """Calls that the listener is at work on."""
    wait_seconds: Annotated[float, Field(ge=0, le=ASK_EVERY)] = ASK_EVERY


class LocalAnswer(Shape):
    """The answer of the listener's program; ``error`` where it gave none."""

    status: Annotated[int, Field(ge=100, le=999)] | None = None
    ms: Annotated[float, Field(ge=0, le=86_400_000)] = 0.0
    error: Annotated[str, Field(max_length=1000)] = ""


async def enter(gateway: Gateway, actor: Actor, request: EnterRequest, address: str = "") -> views.Entered:
    """Be there as a listener from now on, for as long as one goes on asking for calls."""
    require(actor, "read")
    if not request.name.isprintable() or not request.name.strip():
        raise invalid("name", "may hold printable characters only")
    await sweep(gateway)
    # Without those that were ended: their rows stay for a while, so that they can be told why.
    present = [other for other in await gateway.store.listeners.all() if other.ended_by is None]
    if len(present) >= MOST_LISTENERS or sum(_is_own(actor, other) for other in present) >= MOST_OF_ONE:
        raise Refused("rate_limited", "Too many listeners are there; end one first.", retry_after=10)
    now = gateway.clock()
    listener = Listener(
        new_id("lsn"), request.name.strip(), actor.id, actor.name, address[:80], now, now + LEASE
    )
    await gateway.store.listeners.enter(listener)
    return shown(views.Entered, listener, by=listener.owner, ask_within=LEASE)


async def listing(gateway: Gateway, actor: Actor) -> list[views.Listener]:
    """Each `postern listen` that is connected now, the oldest first."""
    require(actor, "read")
    return [views.listener_of(listener) for listener in await _present(gateway)]


async def ask(gateway: Gateway, actor: Actor, listener_id: str, request: AskRequest) -> views.HandedCalls:
    """The calls that are there for a listener; where there are none, the answer comes when there are, or
    after a moment. Asking says that it is still there. Calls that it
    has not answered come again, unless it says that it knows them."""
    require(actor, "read")
    listener = await _own(gateway, actor, listener_id)
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
            calls = [call for call in under_way if call.id not in known]
            left = until - clock()
            if calls or woken or left <= 0 or gateway.runtime.listeners.closed:
                return views.HandedCalls(calls=[await _with_request(gateway, call) for call in calls])
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(left, gateway.runtime.waiters.look_every)):
                    await news.wait()


async def answer(
    gateway: Gateway, actor: Actor, listener_id: str, handed_id: str, request: LocalAnswer
) -> LocalRun:
    """How a listener's program answered a recorded call, which is shown at that call under `localRuns`."""
    require(actor, "read")
    listener = await _own(gateway, actor, listener_id)
    call = await gateway.store.listeners.one_handed(handed_id)
    if call is None or call.listener_id != listener.id:
        raise Refused("not_found", "this call was not handed to this listener")
    error = " ".join(request.error.replace("\0", " ").split())  # a database's text has no NUL
    if not error and request.status is None:
        error = "there was no answer"
    took, now = round(request.ms * 1000), gateway.clock()
    ended = replace(call, ended_at=now, status=request.status, duration_us=took, error=error[:1000])
    gateway.runtime.live.touch(call.invocation_id)
    return run_of(await gateway.store.listeners.ended(ended))


async def end(gateway: Gateway, actor: Actor, listener_id: str) -> None:
    """End a listener: its command ends and says so. Somebody else's needs the access level write."""
    require(actor, "read")
    listener = existing(await gateway.store.listeners.get(listener_id), NOT_THERE)
    note = None
    if not _is_own(actor, listener):
        require(actor, "write")
        note = noted(gateway, actor, "listener ended", listener.id, listener=listener.name)
    if listener.ended_by is not None:
        raise Refused("not_found", NOT_THERE)
    await gateway.store.listeners.end(listener, actor.name, gateway.clock(), note)
    gateway.runtime.listeners.wake(listener.id)


async def replay(gateway: Gateway, actor: Actor, listener_id: str, invocation_id: str) -> LocalRun:
    """Send one recorded call to a listener's program. No workflow is started; how its program answered is
    shown at the call, under `localRuns`."""
    require(actor, "write")
    invocation = (await recorded(gateway, invocation_id)).invocation
    if invocation.body_is_gone or invocation.body_is_cut:
        raise Refused("conflict", "the call's body is not kept whole")
    present = {other.id: other for other in await _present(gateway)}
    listener = existing(present.get(listener_id), NOT_THERE)
    call = ListenerCall(
        new_id("hnd"), invocation_id, listener.id, listener.name, listener.owner, gateway.clock(), actor.name
    )
    note = noted(gateway, actor, "replayed to a listener", invocation_id, listener=listener.name)
    if not await gateway.store.listeners.hand(call, note):
        raise Refused("not_found", NOT_THERE)
    gateway.runtime.listeners.wake(listener.id)
    gateway.runtime.live.touch(invocation_id)
    return run_of(call)


# --- for the processes that serve ------------------------------------------------------------------------------------


async def sweep(gateway: Gateway) -> None:
    """Ends the listeners that have not been heard of."""
    now = gateway.clock()
    listed = await gateway.store.listeners.all()
    for listener in listed:
        if (
            listener.ended_by is None and listener.lease_until > now + 2 * LEASE
        ):  # the clock was set back since
            await gateway.store.listeners.renew(listener.id, now + LEASE)
    if any(listener.lease_until <= now for listener in listed):
        await gateway.store.listeners.sweep(now)


async def _present(gateway: Gateway) -> list[Listener]:
    now = gateway.clock()
    return [listener for listener in await gateway.store.listeners.all() if listener.is_there(now)]


def _is_own(actor: Actor, listener: Listener) -> bool:
    return (actor.id, actor.name) == (listener.owner_id, listener.owner)


async def _own(gateway: Gateway, actor: Actor, listener_id: str) -> Listener:
    listener = await gateway.store.listeners.get(listener_id)
    if listener is None or not _is_own(actor, listener):
        raise Refused("not_found", NOT_THERE)
    if listener.ended_by is not None:
        raise Refused("conflict", f"{listener.ended_by} has ended this listener")
    return listener


async def _with_request(gateway: Gateway, call: ListenerCall) -> views.HandedCall:
    story = await recorded(gateway, call.invocation_id)
    return views.HandedCall(id=call.id, asked_by=call.asked_by, request=request_in(gateway, story))


SWEEP_EVERY = 5.0


class ListenersLoop:
    """Ends listeners that have died."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        loop = Loop("listeners", self._work, SWEEP_EVERY)
        self.run, self.stop = loop.run, loop.stop

    async def _work(self) -> None:
        await sweep(self._gateway)
