"""A listener is there for as long as it is heard of, and recorded calls are replayed to it."""

import asyncio
from typing import Any

import pytest
from pydantic import ValidationError

from postern.core.access.accounts import Actor
from postern.core.listeners import LEASE, Listener
from postern.core.problems import Refused
from postern.usecases.access import audit
from postern.usecases.history import history
from postern.usecases.history.views.calls import LocalRun
from postern.usecases.listeners import listeners
from postern.usecases.listeners.listeners import AskRequest, EnterRequest, LocalAnswer
from postern.usecases.listeners.views import Entered, HandedCall
from support.clock import HeldClock, later
from support.desk import Desk, on_both
from support.house import OWNER, House
from support.refusals import fields_refused, refused
from support.waiting import PATIENCE, until

ADA = Actor("ada", "write", "usr_ada", "ses_1")
BOB = Actor("bob", "write", "usr_bob", "ses_2")
READER = Actor("a reader", "read", "key_1")


async def enter(house: House, who: Actor = ADA, name: str = "ada@laptop") -> Entered:
    return await listeners.enter(house.gateway, who, EnterRequest(name=name), "192.0.2.7")


async def ask(
    house: House, listener: Entered, *known: str, who: Actor = ADA, wait: float = 4
) -> list[HandedCall]:
    request = AskRequest.model_construct(known=list(known), wait_seconds=wait)
    return (await listeners.ask(house.gateway, who, listener.id, request)).calls


async def asking(house: House, listener: Entered) -> "asyncio.Task[list[HandedCall]]":
    """One that waits for longer than the test lasts, if nothing comes."""
    house.gateway.runtime.waiters.look_every = 3600.0
    task = asyncio.create_task(ask(house, listener, wait=3600.0))
    await until(lambda: listener.id in house.gateway.runtime.listeners._waiting)
    return task


async def answer(house: House, listener: Entered, call: HandedCall, **given: Any) -> LocalRun:
    given = {"status": 200, "ms": 3.0, **given}
    return await listeners.answer(house.gateway, ADA, listener.id, call.id, LocalAnswer(**given))


async def test_a_lease_runs_out_also_where_the_clock_was_set_back(house: House) -> None:
    await enter(house)
    gone = []
    for seconds in (-24 * 3600.0, LEASE - 1.0, 2.0):
        later(house.gateway, seconds)
        gone.append(len(await house.gateway.store.listeners.all()))
        await listeners.sweep(house.gateway)
        gone.append(len(await house.gateway.store.listeners.all()))
    assert gone == [1, 1, 1, 1, 1, 0], "one that is there has the time to ask again"


async def test_asking_renews_the_lease(house: House) -> None:
    listener = await enter(house)
    for _ in range(3):
        later(house.gateway, 6.0)
        assert await ask(house, listener, wait=0) == []
        await listeners.sweep(house.gateway)
        assert len(await listeners.listing(house.gateway, READER)) == 1
    later(house.gateway, LEASE + 1)
    await listeners.sweep(house.gateway)
    with pytest.raises(Refused, match="not heard of for too long"):
        await ask(house, listener, wait=0)


async def test_a_call_is_given_again_until_it_is_answered_or_known(house: House) -> None:
    listener = await enter(house)
    run = await listeners.replay(house.gateway, ADA, listener.id, await house.recorded(await house.webhook()))
    (call,) = await ask(house, listener)
    assert call.id == run.id
    assert [one.id for one in await ask(house, listener)] == [call.id]
    assert await ask(house, listener, call.id, wait=0) == []
    await answer(house, listener, call)
    assert await ask(house, listener, wait=0) == []


async def test_a_recorded_call_is_replayed_to_a_listener_alone(house: House) -> None:
    webhook = await house.webhook()
    recorded = await house.recorded(webhook, b'{"n": 1}')
    await house.deliver()
    assert len(house.engine.started) == 1
    listener = await enter(house, READER, "a reader's")
    asked = await listeners.replay(house.gateway, ADA, listener.id, recorded)
    (call,) = await ask(house, listener, who=READER)
    assert (call.id, call.asked_by) == (asked.id, "ada")
    assert call.request.invocation_id == recorded
    given = LocalAnswer(status=503, ms=7.5)
    await listeners.answer(house.gateway, READER, listener.id, call.id, given)
    await house.deliver()
    item = await history.show(house.gateway, OWNER, recorded)
    assert (len(item.deliveries), sum(house.engine.times.values())) == (1, 1)
    (run,) = item.local_runs
    assert (run.status, run.ms, run.asked_by, run.error) == (503, 7.5, "ada", "")
    refusal = await refused(listeners.replay(house.gateway, READER, listener.id, recorded))
    assert refusal.code == "access_denied"


@on_both
async def test_what_a_listener_reports_can_be_written_down(desk: Desk) -> None:
    gateway, webhook = desk.gateway, await desk.webhook()
    listener = await listeners.enter(gateway, ADA, EnterRequest(name="ada"))
    recorded = await desk.accepted(webhook, {})
    run = await listeners.replay(gateway, ADA, listener.id, recorded)
    told = LocalAnswer(ms=86_400_000, error="no\0answer")
    await listeners.answer(gateway, ADA, listener.id, run.id, told)
    (ended,) = (await history.show(gateway, ADA, recorded)).local_runs
    assert (ended.ms, ended.error) == (86_400_000, "no answer")
    for longer in (86_400_001, 1e308):
        with pytest.raises(ValidationError):
            LocalAnswer(ms=longer)


async def notes(house: House, subject: str) -> list[str]:
    found = (await audit.listing(house.gateway, OWNER, subject=subject)).items
    return [one.action for one in found if one.action.startswith("listener")]


async def test_what_a_listener_calls_itself_can_be_read(house: House) -> None:
    entered = await enter(house, name="  ada@laptop ")
    assert (entered.name, entered.by, entered.address) == ("ada@laptop", "ada", "192.0.2.7")
    assert entered.ask_within == LEASE
    for name in ("   ", "ada\n", "ada\x00", "\u202e"):
        assert list(await fields_refused(enter(house, name=name))) == ["name"]
    far = await listeners.enter(house.gateway, ADA, EnterRequest(name="x"), "f" * 100)
    assert len(far.address) == 80
    shown = await listeners.listing(house.gateway, READER)
    assert [(one.id, one.name) for one in shown] == [(entered.id, "ada@laptop"), (far.id, "x")]


async def test_twenty_listeners_are_there_of_one_user_and_two_hundred_of_all(house: House) -> None:
    now = HeldClock(house.gateway).now

    async def come(who: Actor, many: int) -> int:
        """How many were let in."""
        for number in range(many):
            try:
                await enter(house, who)
            except Refused as problem:
                assert (problem.code, problem.retry_after) == ("rate_limited", 10)
                return number
        return many

    assert await come(ADA, 21) == 20
    first, *_ = await listeners.listing(house.gateway, ADA)
    await listeners.end(house.gateway, BOB, first.id)
    assert await come(ADA, 2) == 1, "one that was ended takes no place"
    for number in range(178):
        other = Listener(f"lsn_{number}", "desk", f"usr_{number}", "ada", "", now, now + LEASE)
        await house.gateway.store.listeners.enter(other)
    assert await come(BOB, 3) == 2
    later(house.gateway, LEASE)  # whose time is over takes no place, though nobody has put them out yet
    await enter(house)
    assert len(await listeners.listing(house.gateway, READER)) == 1


def test_who_asks_as_long_as_it_may_can_miss_one_answer() -> None:
    assert 2 * listeners.ASK_EVERY + listeners.RENEW_AFTER <= LEASE
    for seconds in (-0.1, listeners.ASK_EVERY + 0.1):
        with pytest.raises(ValidationError):
            AskRequest(wait_seconds=seconds)
    assert AskRequest().wait_seconds == listeners.ASK_EVERY


async def test_who_waits_for_calls_hears_at_once_that_it_was_ended_or_that_the_gateway_ends(
    house: House,
) -> None:
    async with asyncio.timeout(PATIENCE):
        ended = await enter(house)
        task = await asking(house, ended)
        await listeners.end(house.gateway, BOB, ended.id)
        assert await task == []
        with pytest.raises(Refused, match="bob has ended this listener"):
            await ask(house, ended)
        other = await enter(house)
        task = await asking(house, other)
        house.gateway.runtime.listeners.close()
        assert await task == []
        assert await ask(house, other) == [], "and nobody begins to wait"


async def test_a_call_is_answered_by_whom_it_was_given_to(house: House) -> None:
    listener, other = await enter(house), await enter(house, BOB, "bob@desk")
    run = await listeners.replay(house.gateway, ADA, listener.id, await house.recorded(await house.webhook()))
    for who, from_whom, one in ((BOB, other, run.id), (ADA, listener, "hnd_none")):
        told = listeners.answer(house.gateway, who, from_whom.id, one, LocalAnswer(status=200))
        assert (await refused(told)).code == "not_found"


async def test_whoever_ends_a_listener_is_written_down_where_it_concerns_somebody_else(house: House) -> None:
    own, of_another = await enter(house), await enter(house)
    await listeners.end(house.gateway, ADA, own.id)
    await listeners.end(house.gateway, BOB, of_another.id)
    assert (await notes(house, own.id), await notes(house, of_another.id)) == ([], ["listener ended"])
    assert (await refused(listeners.end(house.gateway, BOB, of_another.id))).code == "not_found"


@pytest.mark.parametrize("ended", [True, False])
async def test_what_one_that_is_gone_had_not_answered_is_said_at_the_call(house: House, ended: bool) -> None:
    recorded = await house.recorded(await house.webhook())
    listener, other = await enter(house), await enter(house, BOB)
    for one in (listener, other):
        await listeners.replay(house.gateway, ADA, one.id, recorded)
    if ended:
        await listeners.end(house.gateway, ADA, listener.id)
    else:
        await house.gateway.store.listeners.renew(other.id, house.gateway.clock() + 2 * LEASE)
        later(house.gateway, LEASE)
        await listeners.sweep(house.gateway)
    item = await history.show(house.gateway, OWNER, recorded)
    gone = "the listener went away before it had answered"
    assert [(run.error, run.ended_at is not None) for run in item.local_runs] == [(gone, True), ("", False)]


async def test_a_replay_to_a_listener_wakes_it_and_is_written_down(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = await house.recorded(await house.webhook())
    listener = await enter(house)
    task, touched = await asking(house, listener), list[str]()
    monkeypatch.setattr(house.gateway.runtime.live, "touch", touched.append)
    run = await listeners.replay(house.gateway, BOB, listener.id, recorded)
    (call,) = await asyncio.wait_for(task, PATIENCE)
    assert (call.id, run.by, run.listener) == (run.id, "ada", "ada@laptop")
    (note, *_) = (await audit.listing(house.gateway, OWNER, subject=recorded)).items
    assert (note.action, note.changes) == ("replayed to a listener", {"listener": "ada@laptop"})
    await answer(house, listener, call)
    assert (await answer(house, listener, call, status=500)).status == 200, "the first answer stays"
    assert touched == [recorded] * 3
    later(house.gateway, LEASE)
    assert (await refused(listeners.replay(house.gateway, BOB, listener.id, recorded))).code == "not_found"


async def test_a_call_that_retention_takes_meanwhile_is_handed_to_nobody(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = await house.recorded(await house.webhook())
    story = await house.story(recorded)
    await house.deliver()
    await house.gateway.store.retention.delete([recorded])

    async def found(invocation_id: str) -> object:
        return story

    monkeypatch.setattr(house.gateway.store.history, "get", found)
    listener = await enter(house)
    assert (await refused(listeners.replay(house.gateway, ADA, listener.id, recorded))).code == "not_found"
    assert await ask(house, listener, wait=0) == []


async def test_only_a_call_that_is_kept_whole_is_replayed_to_a_listener(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = await house.recorded(await house.webhook())
    story, listener = await house.story(recorded), await enter(house)

    async def found(invocation_id: str) -> object:
        return story

    monkeypatch.setattr(house.gateway.store.history, "get", found)
    for body, size, whole in (
        (b"", 0, True),
        (None, 0, True),
        (None, 2, False),
        (b"{", 2, False),
        (b"{}", 2, True),
    ):
        story.invocation.body, story.invocation.body_size = body, size
        replaying = listeners.replay(house.gateway, ADA, listener.id, recorded)
        if whole:
            await replaying
        else:
            assert (await refused(replaying)).code == "conflict"


async def test_a_serving_process_puts_out_who_died(house: House) -> None:
    listener = await enter(house)
    later(house.gateway, LEASE)
    loop = listeners.ListenersLoop(house.gateway)
    running = asyncio.create_task(loop.run())
    async with asyncio.timeout(PATIENCE):
        while await house.gateway.store.listeners.get(listener.id) is not None:
            await asyncio.sleep(0.001)
    loop.stop()
    await running
