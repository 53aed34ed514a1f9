"""A listener answers a webhook's calls in the place of the engine, one at a time, for as long as it is heard of."""

import asyncio
import base64
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from pydantic import ValidationError

from postern.core.access.accounts import Actor
from postern.core.listeners import LEASE, Listener
from postern.core.problems import Refused
from postern.usecases.access import audit
from postern.usecases.history import history
from postern.usecases.listeners import listeners
from postern.usecases.listeners.listeners import AskRequest, EnterRequest, LocalAnswer
from postern.usecases.listeners.views import Entered, HandedCall
from postern.usecases.webhooks import bin, webhooks
from postern.usecases.webhooks.views import Webhook
from support.clock import HeldClock, later
from support.desk import Desk
from support.house import OWNER, House, a_house, waited_long_enough
from support.refusals import fields_refused, refused
from support.reply import HttpReply
from support.waiting import PATIENCE, until
from usecases.calls.test_respond import counted

ADA = Actor("ada", "write", "usr_ada", "ses_1")
BOB = Actor("bob", "write", "usr_bob", "ses_2")
READER = Actor("a reader", "read", "key_1")


async def waiting_webhook(house: House, **more: Any) -> Webhook:
    waits = {"enabled": True, "timeoutSeconds": 20}
    return await house.webhook(synchronousResponse=waits, **more)


async def enter(house: House, webhook: Webhook | None, who: Actor = ADA, name: str = "ada@laptop") -> Entered:
    wanted = EnterRequest(name=name, answers=webhook.id if webhook else None)
    return await listeners.enter(house.gateway, who, wanted, "192.0.2.7")


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


async def a_caller_waits(house: House) -> tuple[Entered, asyncio.Task[HttpReply], HandedCall]:
    """For what a listener answers that has its call."""
    webhook = await waiting_webhook(house)
    listener = await enter(house, webhook)
    calling = asyncio.create_task(house.call(webhook))
    (call,) = await ask(house, listener)
    return listener, calling, call


async def answer(house: House, listener: Entered, call: HandedCall, body: bytes = b"", **given: Any) -> Any:
    given = {"status": 200, "body_base64": base64.b64encode(body).decode(), "ms": 3.0, **given}
    return await listeners.answer(house.gateway, ADA, listener.id, call.id, LocalAnswer(**given))


async def only_call(house: House) -> Any:
    (found,) = await house.history()
    return await history.show(house.gateway, OWNER, found.id)


async def test_its_answer_is_what_the_caller_hears_and_no_workflow_is_started(house: House) -> None:
    webhook = await waiting_webhook(house)
    listener = await enter(house, webhook)
    calling = asyncio.create_task(house.call(webhook, b'{"n":  1}', headers={"x-odd": "a"}))
    (call,) = await ask(house, listener)
    assert (call.kind, base64.b64decode(call.request.body_base64 or "")) == ("answer", b'{"n":  1}')
    sent = [["Content-Type", "text/html; charset=utf-8"], ["X-Mine", "yes"]]
    sent += [["Set-Cookie", "a=b"], ["Server", "mine"]]
    body = bytes(range(256))
    taken = await answer(house, listener, call, body, status=418, headers=sent)
    heard: HttpReply = await calling
    assert (heard.status, heard.body, taken.heard) == (418, body, True)
    assert (heard.headers["content-type"], heard.headers["x-mine"]) == ("text/html; charset=utf-8", "yes")
    assert "sandbox" in heard.headers["content-security-policy"]
    assert not {"set-cookie", "server"} & heard.headers.keys()
    await house.deliver()
    assert house.engine.started == {}
    item = await only_call(house)
    assert (item.status, item.listener, item.http_status) == ("responded", "ada@laptop", 418)
    (run,) = item.local_runs
    assert (run.kind, run.status, run.error, run.by) == ("answer", 418, "", "ada")
    assert item.run_state == "completed"


async def test_one_at_a_time_and_the_second_hears_who(house: House) -> None:
    webhook = await waiting_webhook(house)
    first = await enter(house, webhook)
    refusal = await refused(enter(house, webhook, BOB, "bob@desk"))
    assert refusal.code == "conflict"
    assert f"ada@laptop (ada from 192.0.2.7) answers its calls since {first.since}" in refusal.detail
    await enter(house, None, BOB, "bob@desk")  # listening alone takes nothing from anybody
    shown = await webhooks.show(house.gateway, READER, webhook.id)
    assert shown.answered_by is not None and shown.answered_by.name == "ada@laptop"
    await listeners.end(house.gateway, ADA, first.id)
    await enter(house, webhook, BOB, "bob@desk")


async def test_twenty_at_once_and_one_of_them_has_it(house: House) -> None:
    webhook = await waiting_webhook(house)
    actors = [Actor(f"user {n}", "write", f"usr_{n}") for n in range(20)]
    entering = [enter(house, webhook, one, one.name) for one in actors]
    came = await asyncio.gather(*entering, return_exceptions=True)
    assert sorted(type(one).__name__ for one in came) == ["Entered"] + ["Refused"] * 19


async def test_a_lease_runs_out_and_the_engine_is_asked_again(house: House) -> None:
    webhook = await waiting_webhook(house)
    house.lets_callers_wait(webhook)
    await enter(house, webhook)
    later(house.gateway, LEASE - 0.5)
    assert not await listeners.sweep(house.gateway)
    later(house.gateway, 1.0)
    await house.call(webhook)  # before anybody has looked
    assert len(house.engine.started) == 1
    assert await listeners.sweep(house.gateway)
    await listeners.refresh(house.gateway)
    assert (await only_call(house)).listener is None
    notes = [one.action for one in (await audit.listing(house.gateway, OWNER, 50, None, webhook.id)).items]
    assert notes[:2] == ["listener was not heard of any more", "listener answers"]


async def test_a_lease_runs_out_also_where_the_clock_was_set_back(house: House) -> None:
    await enter(house, await waiting_webhook(house))
    swept = []
    for seconds in (-24 * 3600.0, LEASE - 1.0, 2.0):
        later(house.gateway, seconds)
        swept.append(await listeners.sweep(house.gateway))
    assert swept == [False, False, True], "one that is there has the time to ask again"


async def test_asking_renews_the_lease(house: House) -> None:
    listener = await enter(house, await waiting_webhook(house))
    for _ in range(3):
        later(house.gateway, 6.0)
        assert await ask(house, listener, wait=0) == []
        assert not await listeners.sweep(house.gateway)
    later(house.gateway, LEASE + 1)
    await listeners.sweep(house.gateway)
    with pytest.raises(Refused, match="not heard of for too long"):
        await ask(house, listener, wait=0)


async def test_who_waits_for_a_listener_that_died_hears_that_answering_failed(house: House) -> None:
    webhook = await waiting_webhook(house)
    listener = await enter(house, webhook)
    calling = asyncio.create_task(house.call(webhook))
    await ask(house, listener)
    later(house.gateway, LEASE + 1)
    await listeners.sweep(house.gateway)
    heard = await calling
    assert (heard.status, heard.json["code"]) == (502, "workflow_failed")
    assert "the program in its place" in heard.json["detail"], "no workflow was asked"
    item = await only_call(house)
    assert (item.status, item.error) == ("failed", "the listener went away before it had answered")
    await house.deliver()
    assert house.engine.started == {}


async def test_who_waits_for_a_listener_that_is_ended_hears_so_at_once(house: House) -> None:
    listener, calling, call = await a_caller_waits(house)
    await listeners.end(house.gateway, BOB, listener.id)
    heard = await calling
    assert (heard.status, heard.json["code"]) == (502, "workflow_failed")
    assert (await only_call(house)).status == "failed"
    with pytest.raises(Refused, match="bob has ended this listener"):
        await answer(house, listener, call, b"too late")
    renewed = house.gateway.store.listeners.renew(listener.id, house.gateway.clock() + LEASE)
    assert await renewed is False


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"status": None, "error": "Connection refused"}, "Connection refused"),
        ({"status": 101}, "its answer cannot be sent: status must be a number from 200 to 599"),
        ({"body": b"x" * (1024 * 1024 + 1)}, "its answer cannot be sent: the body may have 1 MiB"),
        ({"status": None}, "there was no answer"),
    ],
)
async def test_no_answer_and_rubbish_are_the_failures_they_are_of_an_engine(
    house: House, given: dict[str, Any], why: str
) -> None:
    listener, calling, call = await a_caller_waits(house)
    await answer(house, listener, call, **given)
    heard = await calling
    assert (heard.status, heard.json["code"]) == (502, "workflow_failed")
    item = await only_call(house)
    assert (item.status, item.error, item.local_runs[0].error) == ("failed", why, why)


async def test_an_answer_that_is_told_twice_was_heard(house: House) -> None:
    """The connection was cut before the listener heard that it was taken."""
    listener, calling, call = await a_caller_waits(house)
    first = await answer(house, listener, call, b"once")
    again = await answer(house, listener, call, b"once")
    assert (first.heard, again.heard, again.detail) == (True, True, "")
    assert (await calling).body == b"once"


async def test_an_answer_that_comes_too_late_is_reported_as_late(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    listener, calling, call = await a_caller_waits(house)
    waited_long_enough(house, monkeypatch)
    heard = await calling
    assert (heard.status, heard.json["code"]) == (504, "response_timeout")
    assert "its workflow" not in heard.json["detail"], "it was handed to none"
    taken = await answer(house, listener, call, b"late")
    assert (taken.heard, "too late" in taken.detail) == (False, True)
    item = await only_call(house)
    (delivery,) = item.deliveries
    assert (item.http_status, delivery.late, delivery.answer) == (504, True, "response_timeout")


async def test_a_call_is_given_again_until_it_is_answered_or_known(house: House) -> None:
    listener, calling, call = await a_caller_waits(house)
    assert [one.id for one in await ask(house, listener)] == [call.id]
    assert await ask(house, listener, call.id, wait=0) == []
    await answer(house, listener, call)
    assert await ask(house, listener, wait=0) == []
    assert (await calling).status == 200


async def test_a_call_for_one_that_was_ended_this_moment_is_the_engine_s(house: House) -> None:
    webhook = await waiting_webhook(house)
    house.lets_callers_wait(webhook)
    listener = await enter(house, webhook)
    known = await house.gateway.store.listeners.all()
    await listeners.end(house.gateway, BOB, listener.id)
    house.gateway.runtime.listeners.take_in(known)  # as another process would think for a moment
    house.engine.down = True  # so that the recorded delivery alone can start it later
    await house.call(webhook)
    house.engine.down = False
    later(house.gateway, 60)
    await house.deliver()
    assert len(house.engine.started) == 1


async def test_a_duplicate_hears_what_the_listener_answered_the_first(house: House) -> None:
    webhook = await waiting_webhook(house, duplicateProtection={"enabled": True, "key": "body:id"})
    listener = await enter(house, webhook)
    calling = asyncio.create_task(house.call(webhook, b'{"id": 1}'))
    (call,) = await ask(house, listener)
    again = asyncio.create_task(house.call(webhook, b'{"id": 1}'))
    await answer(house, listener, call, b"once")
    assert ((await calling).body, (await again).body) == (b"once", b"once")
    assert await ask(house, listener, wait=0) == []


async def test_what_cannot_be_answered_is_reported(house: House) -> None:
    quick = await house.webhook()
    with pytest.raises(Refused, match="switch on the synchronous response first"):
        await enter(house, quick)
    assert (await refused(enter(house, await waiting_webhook(house), READER))).code == "access_denied"
    listener = await enter(house, await waiting_webhook(house))
    for who in (BOB, READER):
        assert (await refused(ask(house, listener, who=who, wait=0))).code == "not_found"
    assert (await refused(listeners.end(house.gateway, READER, listener.id))).code == "access_denied"
    assert (await refused(listeners.end(house.gateway, READER, "lsn_nobody"))).code == "not_found"


async def test_who_may_only_read_by_now_answers_no_caller(house: House) -> None:
    listener, calling, call = await a_caller_waits(house)
    demoted = replace(ADA, level="read")
    answering = listeners.answer(house.gateway, demoted, listener.id, call.id, LocalAnswer(status=200))
    assert (await refused(answering)).code == "access_denied"
    ending = ask(house, listener, who=demoted, wait=0)  # which ends it
    assert (await refused(ending)).code == "access_denied"
    assert (await calling).status == 502


async def test_a_listener_whose_webhook_stops_waiting_is_ended(house: House) -> None:
    webhook = await waiting_webhook(house)
    listener = await enter(house, webhook)
    await webhooks.change(house.gateway, OWNER, webhook.id, {"synchronousResponse": {"enabled": False}})
    with pytest.raises(Refused, match="synchronous response"):
        await ask(house, listener, wait=0)
    assert await listeners.listing(house.gateway, READER) == []


async def test_a_recorded_call_is_replayed_to_a_listener_alone(house: House) -> None:
    webhook = await house.webhook()
    recorded = await house.recorded(webhook, b'{"n": 1}')
    await house.deliver()
    assert len(house.engine.started) == 1
    listener = await enter(house, None, READER, "a reader's")
    asked = await listeners.replay(house.gateway, ADA, listener.id, recorded)
    (call,) = await ask(house, listener, who=READER)
    assert (call.id, call.kind, call.asked_by) == (asked.id, "replay", "ada")
    assert call.request.invocation_id == recorded
    given = LocalAnswer(status=503, ms=7.5)
    await listeners.answer(house.gateway, READER, listener.id, call.id, given)
    await house.deliver()
    item = await history.show(house.gateway, OWNER, recorded)
    assert (len(item.deliveries), sum(house.engine.times.values())) == (1, 1)
    (run,) = item.local_runs
    assert (run.kind, run.status, run.ms, run.asked_by, run.error) == ("replay", 503, 7.5, "ada", "")
    refusal = await refused(listeners.replay(house.gateway, READER, listener.id, recorded))
    assert refusal.code == "access_denied"


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
    entered = await enter(house, None, name="  ada@laptop ")
    assert (entered.name, entered.by, entered.address) == ("ada@laptop", "ada", "192.0.2.7")
    assert (entered.answers, entered.ask_within) == (None, LEASE)
    for name in ("   ", "ada\n", "ada\x00", "\u202e"):
        assert list(await fields_refused(enter(house, None, name=name))) == ["name"]
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
                await enter(house, None, who)
            except Refused as problem:
                assert (problem.code, problem.retry_after) == ("rate_limited", 10)
                return number
        return many

    assert await come(ADA, 21) == 20
    for number in range(178):
        other = Listener(f"lsn_{number}", "desk", f"usr_{number}", "ada", "", now, now + LEASE)
        await house.gateway.store.listeners.enter(other, None)
    assert await come(BOB, 3) == 2
    later(house.gateway, LEASE)  # whose time is over takes no place, though nobody has put them out yet
    await enter(house, None)
    assert len(await listeners.listing(house.gateway, READER)) == 1


def test_who_asks_as_long_as_it_may_can_miss_one_answer() -> None:
    assert 2 * listeners.ASK_EVERY + listeners.RENEW_AFTER <= LEASE
    for seconds in (-0.1, listeners.ASK_EVERY + 0.1):
        with pytest.raises(ValidationError):
            AskRequest(wait_seconds=seconds)
    assert AskRequest().wait_seconds == listeners.ASK_EVERY


async def test_listeners_that_were_ended_take_no_place(house: House) -> None:
    for number in range(listeners.MOST_OF_ONE + 1):
        entered = await enter(house, None, name=f"laptop {number}")
        await listeners.end(house.gateway, BOB, entered.id)
    assert not await listeners.listing(house.gateway, ADA)


async def test_who_waits_for_calls_hears_at_once_that_it_was_ended_or_that_the_gateway_ends(
    house: House,
) -> None:
    async with asyncio.timeout(PATIENCE):
        ended = await enter(house, None)
        task = await asking(house, ended)
        await listeners.end(house.gateway, BOB, ended.id)
        assert await task == []
        with pytest.raises(Refused, match="bob has ended this listener"):
            await ask(house, ended)
        other = await enter(house, None)
        task = await asking(house, other)
        house.gateway.runtime.listeners.close()
        assert await task == []
        assert await ask(house, other) == [], "and nobody begins to wait"


async def test_a_call_is_answered_once_and_by_whom_it_was_given_to(house: House) -> None:
    webhook = await waiting_webhook(house)
    listener = await enter(house, webhook)
    other = await enter(house, None, BOB, "bob@desk")
    calling = asyncio.create_task(house.call(webhook))
    (call,) = await ask(house, listener)
    (stored,) = await house.history()
    deadline = (await house.gateway.store.deliveries.get(f"{stored.id}.1")).deadline  # type: ignore[union-attr]
    assert (call.until, call.asked_by) == (deadline, None)
    given = LocalAnswer(status=200)
    answered = listeners.answer
    for who, from_whom, one in ((BOB, other, call.id), (ADA, listener, "hnd_none")):
        assert (await refused(answered(house.gateway, who, from_whom.id, one, given))).code == "not_found"
    assert list(await fields_refused(answer(house, listener, call, body_base64="%"))) == ["bodyBase64"]
    before = counted()
    first = await answer(house, listener, call, b"first")
    again = await answer(house, listener, call, b"second")
    assert (first.heard, first.detail, again.heard) == (True, "", False)
    assert (await calling).body == b"first"
    assert counted() == {**before, "completed": before["completed"] + 1}


async def test_a_program_that_fails_hears_what_its_caller_heard(house: House) -> None:
    listener, calling, call = await a_caller_waits(house)
    failed = {"status": None, "error": "  Connection\n refused " + "x" * 970}
    before = counted()
    first = await answer(house, listener, call, **failed)
    assert first.detail == f"Connection refused {'x' * 970}; the caller heard 502"
    assert (await calling).status == 502
    again = await answer(house, listener, call, **failed)
    assert (again.heard, again.detail) == (False, f"Connection refused {'x' * 970}")
    assert counted() == {**before, "failed": before["failed"] + 1}


async def test_whoever_ends_a_listener_is_written_down_where_it_concerns_somebody_else(house: House) -> None:
    webhook = await waiting_webhook(house)
    answering = await enter(house, webhook)
    await listeners.end(house.gateway, ADA, answering.id)
    assert await notes(house, webhook.id) == ["listener ended", "listener answers"]
    own, of_another = await enter(house, None), await enter(house, None)
    await listeners.end(house.gateway, ADA, own.id)
    await listeners.end(house.gateway, BOB, of_another.id)
    assert (await notes(house, own.id), await notes(house, of_another.id)) == ([], ["listener ended"])
    assert (await refused(listeners.end(house.gateway, BOB, of_another.id))).code == "not_found"
    silent = await enter(house, None)
    later(house.gateway, LEASE)
    assert await listeners.sweep(house.gateway) is True
    assert await notes(house, silent.id) == [], "it answered nobody"
    assert await listeners.sweep(house.gateway) is False


async def test_a_webhook_that_is_gone_has_no_listener(house: House) -> None:
    webhook = await waiting_webhook(house)
    listener = await enter(house, webhook)
    await webhooks.remove(house.gateway, OWNER, webhook.id)
    assert (await refused(ask(house, listener, wait=0))).code == "not_found"
    assert await listeners.listing(house.gateway, READER) == []
    assert (await refused(enter(house, webhook))).code == "not_found"
    await bin.restore(house.gateway, OWNER, webhook.id)
    with pytest.raises(Refused, match=r"the gateway \(there is no webhook with this id\) has ended"):
        await ask(house, listener, wait=0)


async def test_a_replay_to_a_listener_wakes_it_and_is_written_down(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = await house.recorded(await house.webhook())
    listener = await enter(house, None)
    task, touched = await asking(house, listener), list[str]()
    monkeypatch.setattr(house.gateway.runtime.live, "touch", touched.append)
    run = await listeners.replay(house.gateway, BOB, listener.id, recorded)
    (call,) = await asyncio.wait_for(task, PATIENCE)
    assert (call.id, call.until, run.by, run.listener) == (run.id, None, "ada", "ada@laptop")
    (note, *_) = (await audit.listing(house.gateway, OWNER, subject=recorded)).items
    assert (note.action, note.changes) == ("replayed to a listener", {"listener": "ada@laptop"})
    done = await answer(house, listener, call)
    assert (done.heard, done.detail) == (False, "")
    assert (await answer(house, listener, call)).detail == "this was told before"
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
    listener = await enter(house, None)
    assert (await refused(listeners.replay(house.gateway, ADA, listener.id, recorded))).code == "not_found"
    assert await ask(house, listener, wait=0) == []


@pytest.mark.parametrize(
    ("body", "size", "whole"),
    [(b"", 0, True), (None, 0, True), (None, 2, False), (b"{", 2, False), (b"{}", 2, True)],
)
async def test_only_a_call_that_is_kept_whole_is_replayed_to_a_listener(
    house: House, monkeypatch: pytest.MonkeyPatch, body: bytes | None, size: int, whole: bool
) -> None:
    recorded = await house.recorded(await house.webhook())
    story = await house.story(recorded)
    story.invocation.body, story.invocation.body_size = body, size

    async def found(invocation_id: str) -> object:
        return story

    monkeypatch.setattr(house.gateway.store.history, "get", found)
    listener = await enter(house, None)
    replaying = listeners.replay(house.gateway, ADA, listener.id, recorded)
    if whole:
        await replaying
    else:
        assert (await refused(replaying)).code == "conflict"


async def test_a_serving_process_takes_in_who_came_elsewhere_and_puts_out_who_died(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listeners, "LOOK_EVERY", 3600.0)
    runtime = house.gateway.runtime.listeners
    webhook = await waiting_webhook(house)
    listener = await enter(house, webhook)
    runtime.take_in([])  # as if it had come through another process
    loop = listeners.ListenersLoop(house.gateway)
    running = asyncio.create_task(loop.run())
    async with asyncio.timeout(PATIENCE):
        await until(lambda: runtime.answering(webhook.id, house.gateway.clock()))
        later(house.gateway, LEASE)
        runtime.changed.set()  # a word from another process: it looks at once
        while await house.gateway.store.listeners.get(listener.id) is not None:
            await asyncio.sleep(0.001)
    loop.stop()
    await running
    assert not runtime.changed.is_set()


async def test_a_caller_at_one_gateway_hears_the_listener_that_asks_at_the_other(
    tmp_path: Path, migrated_url: str
) -> None:
    shared = {"POSTERN_DATABASE_URL": migrated_url, "POSTERN_SECRET_KEYS": "a-key-of-both-long-enough"}
    async with a_house(tmp_path / "1", **shared) as here, a_house(tmp_path / "2", **shared) as there:
        webhook = await waiting_webhook(here)
        await there.gateway.runtime.directory.refresh()
        listener = await enter(there, webhook)
        loop = listeners.ListenersLoop(here.gateway)
        running = asyncio.create_task(loop.run())
        async with asyncio.timeout(PATIENCE):
            await until(lambda: here.gateway.runtime.listeners.answering(webhook.id, here.gateway.clock()))
            calling = asyncio.create_task(here.call(webhook))
            while not (calls := await ask(there, listener)):
                pass
            await answer(there, listener, calls[0], b"from there")
            assert ((await calling).body, here.engine.started) == (b"from there", {})
            with pytest.raises(Refused, match="ada@laptop"):
                await enter(here, webhook, BOB, "bob@desk")
        loop.stop()
        await running
