"""Alarms, judged on a clock of their own: what opens an incident, what it gathers, and what closes it."""

import asyncio
import hashlib
import hmac
import re
import time
from typing import Literal

import pytest

from postern import identity
from postern.core.deliveries.delivery import End
from postern.core.history.invocation import HistoryFilter
from postern.core.moment import to_the_minute
from postern.core.problems import Refused
from postern.core.watch.alarms import Incident, reasons_to_tell
from postern.settings import Settings
from postern.stores.sql.tables import incidents
from postern.usecases.alarms import incidents as incidents_use
from postern.usecases.alarms import judging, views
from postern.usecases.alarms.incidents import acknowledge, at_a_glance, listing, show
from postern.usecases.alarms.judging import AlarmLoop
from postern.usecases.calls import readmission
from postern.usecases.deliveries import replays
from postern.usecases.history import history
from postern.usecases.history.endings import EndingsLoop
from postern.usecases.runtime.process import GatewayTrouble
from postern.usecases.webhooks import webhooks
from postern.wiring.gateway import opened
from support.desk import ACTOR, Desk, on_both
from support.house import House
from support.waiting import until

HOUR, GIB = 3600.0, 2**30
GITHUB = {"method": "hmac", "provider": "github", "secret": "the new secret of the shop"}


class Clock:
    """Of the gateway, and the judge that it has. Ends in the present: ids of calls know that time alone."""

    def __init__(self, of: Desk | House, ago: float) -> None:
        self.now = time.time() - ago
        self.judge = AlarmLoop(of.gateway)
        self.gateway, self.room = of.gateway, (50 * GIB, 100 * GIB)
        of.gateway.clock = lambda: self.now
        of.gateway.store.room = lambda: self.room  # type: ignore[method-assign]

    async def passes(self, seconds: float) -> None:
        self.now += seconds
        await self.judge.round()

    async def open(self) -> list[Incident]:
        return await self.gateway.store.incidents.open()


async def told(of: Desk | House) -> list[views.Incident]:
    return (await listing(of.gateway, ACTOR)).items


def signed(secret: str, body: bytes) -> tuple[bytes, bytes]:
    made = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return b"x-hub-signature-256", f"sha256={made}".encode()


@pytest.mark.parametrize("ids", ["of their calls", "of today"])
async def test_an_incident_lists_the_calls_that_it_counts(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, ids: str
) -> None:
    """It counts from the beginning of a minute: a call that came before that is not its first."""
    webhook_id = await desk.webhook(authentication=GITHUB)
    clock = Clock(desk, 0)
    if ids == "of their calls":
        monkeypatch.setattr(identity, "clock", lambda: clock.now)
    minute = clock.now - clock.now % 60
    for number, ago in enumerate((11 * HOUR, 10 * HOUR, 80, 60, 40, 20, 0)):
        clock.now = minute - ago
        await desk.call(webhook_id, b'{"order": %d}' % number, signed("wrong", b""), at=clock.now)
    await clock.passes(1)
    (incident,) = await told(desk)
    *_, newest = await at_a_glance(desk.gateway, ACTOR, incident.id)
    assert (incident.count, len(newest)) == (4, 4 if ids == "of their calls" else 7)
    assert float(incident.first_at) == minute - 60


async def test_the_story_of_seven_and_a_half_hours_of_401(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A secret was changed at one end only: one incident within five minutes, and all of its calls are let in afterwards."""
    monkeypatch.setattr(incidents_use, "LOOKS_FOR", None)  # however busy the machine is
    webhook_id = await desk.webhook(authentication=GITHUB)
    clock = Clock(desk, 8 * HOUR)

    async def call(secret: str, number: int) -> int:
        body = b'{"order": %d}' % number
        return (await desk.call(webhook_id, body, signed(secret, body), at=clock.now)).status

    assert await call(GITHUB["secret"], 0) == 200
    await clock.passes(60)
    began, told = clock.now, 0.0
    for number in range(1, 113):
        clock.now = began + ((number - 1) / 111) ** 2 * 7.5 * HOUR
        assert await call("the old secret of the shop", number) == 401
        if number < 10 or number % 20 == 0:
            await clock.judge.round()
            told = told or (clock.now if await clock.open() else 0.0)
    assert 0 < told - began <= 300
    await clock.passes(20)
    (incident,) = await clock.open()
    assert (incident.kind, incident.count, incident.reasons) == ("rejected", 112, {"signature_mismatch": 112})
    assert (began - incident.first_at, clock.now - incident.last_at) < (60, 120)
    story = await show(desk.gateway, ACTOR, incident.id)
    assert (len(story.samples), [one.action for one in story.next_actions]) == (3, ["secrets", "send_again"])
    for wrong in ("x" * 2001, "\ud83d"):
        with pytest.raises(Refused) as refusal:
            await acknowledge(desk.gateway, ACTOR, incident.id, wrong)
        assert [one.field for one in refusal.value.errors] == ["note"]
    done = await acknowledge(desk.gateway, ACTOR, incident.id, " asks the shop ")
    assert (done.acknowledged_by, done.acknowledged_note) == (ACTOR.name, "asks the shop")
    with pytest.raises(Refused, match="acknowledged"):
        await acknowledge(desk.gateway, ACTOR, incident.id)

    mended = {"authentication": {"secret": "the old secret of the shop"}}
    await webhooks.change(desk.gateway, ACTOR, webhook_id, mended)
    actions = (await show(desk.gateway, ACTOR, incident.id)).next_actions
    admit = next(one for one in actions if one.action == "admit")
    assert (admit.action, admit.text, admit.count) == ("admit", "Admit 112 calls", 112)
    assert (await readmission.admit_all(desk.gateway, ACTOR, webhook_id, 112)).admitted == 112
    (told_again,) = (await listing(desk.gateway, ACTOR)).items
    assert (told_again.closed_because, told_again.count) == ("each rejected call was admitted", 112)
    story = await show(desk.gateway, ACTOR, incident.id)
    assert ([one.action for one in story.next_actions], story.left) == (["send_again"], 0)
    await clock.passes(20)  # what it was about opens no other one
    assert [row.kind for row in await desk.rows(incidents.select())] == ["rejected"]


async def test_one_bad_call_among_good_ones_is_no_incident_and_a_reason_that_is_new_is(desk: Desk) -> None:
    webhook_id = await desk.webhook(payloadLimitBytes=20)
    clock = Clock(desk, 2 * HOUR)
    of_another_kind = (b"content-type", b"text/plain")  # that it gets some of these is known since yesterday
    for headers in ((), (), (of_another_kind,)):
        await desk.call(webhook_id, {"n": 1}, *headers, at=clock.now - 86_400)
    await desk.store.volumes.roll_up(clock.now)
    for _ in range(6):
        await clock.passes(60)
        await desk.call(webhook_id, {"n": 1}, at=clock.now)
        await desk.call(webhook_id, {"n": 1}, at=clock.now)
    await desk.call(webhook_id, b"no JSON", at=clock.now)
    for _ in range(3):
        await desk.call(webhook_id, {"n": 1}, of_another_kind, at=clock.now)
    await clock.passes(20)
    assert await clock.open() == []
    for _ in range(2):
        await desk.call(webhook_id, b"no JSON", at=clock.now)
    await clock.passes(20)
    (incident,) = await clock.open()
    assert incident.kind == "rejected" and incident.reasons["malformed_json"] == 3


async def test_calls_without_any_proof_are_an_incident_only_where_good_calls_have_stopped(desk: Desk) -> None:
    old, young, never, looked_at = [await desk.webhook(authentication=GITHUB) for _ in range(4)]
    clock, body = Clock(desk, 10 * HOUR), b"{}"
    proof = signed(GITHUB["secret"], body)
    for ago in range(32):  # every six hours, for more than a week
        await desk.call(old, body, proof, at=clock.now - ago * 6 * HOUR)
    for ago in (0, 2):
        await desk.call(young, body, proof, at=clock.now - ago * HOUR)
    later = (1, {never}), (1.5, {never, young}), (3, {never, young}), (1, {never, young, old})
    for hours, expected in later:
        await clock.passes(hours * HOUR)
        for called in (old, young, never) * 5:
            assert (await desk.call(called, body, at=clock.now)).status == 401
            assert (await desk.call(looked_at, body, at=clock.now, method="GET")).status == 405
        await clock.passes(20)
        assert {one.webhook_id for one in await clock.open()} == expected
    assert {reason for one in await clock.open() for reason in one.reasons} == {"signature_missing"}
    await desk.call(old, body, proof, at=clock.now)
    await desk.call(old, body, at=clock.now)
    await clock.passes(20)
    reasons = {one.webhook_id: one.closed_because for one in await told(desk)}
    assert reasons[old] == "calls go well again"


async def test_runs_that_fail_and_starts_in_vain_are_one_incident_until_all_is_well(house: House) -> None:
    webhook = await house.webhook()
    clock = Clock(house, 2 * HOUR)
    house.engine.down = True
    await house.call(webhook)
    await house.deliver()
    clock.now = time.time() + 400
    await clock.passes(1)
    assert await clock.open() == []  # once in vain: the engine may have been starting
    await house.deliver()
    await clock.passes(20)
    (incident,) = await clock.open()
    assert (incident.kind, incident.reasons) == ("not_started", {"waits": 1})
    house.engine.down = False
    clock.now = time.time() + 7200
    await house.deliver()
    await clock.passes(1)
    (one,) = await told(house)
    assert (one.kind, one.closed_because) == ("not_started", "what waited was started")


async def test_where_half_of_the_runs_fail_is_an_incident_however_long_after_their_calls(
    house: House,
) -> None:
    webhook = await house.webhook()
    clock, ends = Clock(house, 0), house.gateway.store.endings

    async def end(calls: list[str], state: Literal["completed", "failed"], emission: int = 1) -> None:
        known = {f"{call}.{emission}": End(state, clock.now, "out of stock") for call in calls}
        assert len((await ends.note([], known, {}, clock.now)).now) == len(calls)

    calls = [await house.recorded(webhook) for _ in range(31)]
    await house.deliver()
    await clock.passes(26 * HOUR + 7)
    await end(calls[4:9], "completed")
    await clock.passes(60)
    began = clock.now
    await end(calls[:4], "failed")
    await clock.passes(15)
    assert await clock.open() == []  # four of nine
    await end(calls[9:10], "failed")
    await clock.passes(15)
    (incident,) = await clock.open()
    assert (incident.kind, incident.count, incident.reasons) == ("runs_failed", 5, {"failed": 5})
    assert (incident.first_at, incident.last_at) == pytest.approx((began, clock.now - 15), abs=0.002)
    # A call that is replayed and fails again is one call.
    await history.replay(house.gateway, ACTOR, calls[0])
    await house.deliver()
    await end(calls[:1], "failed", 2)
    await clock.passes(15)
    story = await show(house.gateway, ACTOR, incident.id)
    assert story.sentence == "The workflow failed for 5 calls, in 6 runs."
    assert (story.samples[0].invocation_id, story.samples[0].detail) == (calls[0], "out of stock")
    assert len({one.invocation_id for one in story.samples}) == 3
    assert [(one.action, one.count) for one in story.next_actions] == [("replay", 5)]
    of_its_button = HistoryFilter(webhook_id=incident.webhook_id, status="failed")
    assert (await replays.plan(house.gateway, ACTOR, of_its_button)).count == 5
    assert story.left == 5
    last = clock.now - 15
    while await clock.open():
        await end([calls.pop()], "completed")
        await clock.passes(60)
    assert 14 * 60 < clock.now - last < 17 * 60


@pytest.mark.parametrize(("kind", "refuses"), [("runs_failed", ""), ("not_started", "no such workflow")])
async def test_once_each_of_its_calls_has_gone_through_an_incident_is_over(
    house: House, monkeypatch: pytest.MonkeyPatch, kind: str, refuses: str
) -> None:
    """At once, where somebody looks at it: a judge who rests for long is woken."""
    monkeypatch.setattr(judging, "SHARE", 10**9)
    monkeypatch.setattr(judging, "LONGEST_PAUSE", HOUR)
    webhook, woken = await house.webhook(), house.gateway.runtime.may_be_over
    clock, ends, house.engine.refuses = Clock(house, 0), house.gateway.store.endings, refuses

    async def end(state: Literal["completed", "failed"], emission: int, some: list[str]) -> None:
        known = {f"{call}.{emission}": End(state, clock.now, "out of stock") for call in some}
        await ends.note([], known, {}, clock.now)

    calls = [await house.recorded(webhook) for _ in range(4)]
    await house.deliver()
    clock.now = time.time()
    await end("failed", 1, [] if refuses else calls)
    await clock.passes(15)
    (incident,) = await clock.open()
    assert (incident.kind, incident.count) == (kind, 4)
    woken.set()
    judge = asyncio.create_task(clock.judge.run())
    await until(lambda: not woken.is_set())
    house.engine.refuses = ""
    for left, call in ((3, calls[:1]), (1, calls[1:3]), (0, calls[3:])):
        for one in call:
            await history.replay(house.gateway, ACTOR, one)
        await house.deliver()
        await end("completed", 2, call)
        clock.now += 15
        assert await clock.open() == [incident]
        assert (await show(house.gateway, ACTOR, incident.id)).left == left
    await until(lambda: clock.gateway.runtime.incidents == [])
    clock.judge.stop()
    await judge
    (over,) = await told(house)
    assert over.closed_because == "each of its calls has gone through"
    assert over.closed_at == pytest.approx(clock.now, abs=0.002)
    assert (await show(house.gateway, ACTOR, incident.id)).next_actions == []
    assert len((await at_a_glance(house.gateway, ACTOR, incident.id))[-1]) == 4
    await house.recorded(webhook)
    await clock.passes(15)
    assert await clock.open() == []


@pytest.mark.parametrize(("kind", "refuses"), [("runs_failed", ""), ("not_started", "no such workflow")])
async def test_callers_who_hear_that_the_workflow_failed_are_no_second_incident(
    house: House, kind: str, refuses: str
) -> None:
    webhook = await house.webhook(synchronousResponse={"enabled": True, "timeoutSeconds": 20})
    clock = Clock(house, 0)
    house.engine.refuses = refuses

    async def ended(key: str) -> End:
        return End("failed", clock.now, "out of stock")

    house.engine.ended = ended  # type: ignore[method-assign]
    assert [(await house.call(webhook)).status for _ in range(3)] == [502] * 3
    await EndingsLoop(house.gateway).write()
    await clock.passes(15)
    await clock.passes(15)
    assert [one.kind for one in await clock.open()] == [kind]


async def test_callers_who_hear_that_the_time_is_over_are_an_incident(house: House) -> None:
    webhook = await house.webhook(synchronousResponse={"enabled": True, "timeoutSeconds": 20})
    house.lets_callers_wait(webhook)
    clock = Clock(house, 0)
    assert [(await house.call(webhook)).status for _ in range(3)] == [504] * 3
    await EndingsLoop(house.gateway).write()
    first = min(one.received_at for one in await house.history())
    await clock.passes(15)
    (incident,) = await clock.open()
    assert (incident.kind, incident.reasons, incident.first_at) == ("answers", {"504": 3}, first)


async def test_starts_that_are_refused_are_counted_among_all_and_each_call_once(house: House) -> None:
    webhook = await house.webhook()
    clock = Clock(house, 0)
    for refused in (False, True, True, True):
        house.engine.refuses = "no such workflow" if refused else ""
        last = await house.recorded(webhook)
        await house.deliver()
    clock.now = time.time()
    await clock.passes(15)
    assert await clock.open() == []  # three of four are less than five
    for _ in range(2):
        await history.replay(house.gateway, ACTOR, last)
        await house.recorded(webhook)
        await house.deliver()
    await clock.passes(15)
    (incident,) = await clock.open()
    assert (incident.kind, incident.count, incident.reasons) == ("not_started", 5, {"refused": 5})


async def test_where_the_engine_is_away_it_is_told_once(house: House) -> None:
    """Not at each webhook; also where it was noticed while nothing could be written."""
    webhook = await house.webhook()
    clock = Clock(house, 0)
    house.engine.down = True
    await house.call(webhook)
    await house.deliver()
    house.gateway.runtime.troubles = [GatewayTrouble("calls wait", "Calls wait.", "down")]
    house.gateway.runtime.troubles_seen = {"calls wait": (clock.now - 90, "Calls wait.")}
    clock.now = time.time() + 400
    await clock.passes(1)
    (incident,) = await clock.open()
    assert (incident.webhook_id, incident.kind, incident.detail) == ("", "gateway", "Calls wait.")
    house.gateway.runtime.troubles = []
    for seconds, over in ((840, []), (61, ["all is well again"])):  # it rests as long as the others
        await clock.passes(seconds)
        (one,) = await told(house)
        assert [one.closed_because] * (one.closed_at is not None) == over
        ends = re.fullmatch(
            r"Calls wait. It was seen last at .*: if .*, this is over soon after (.*).", one.sentence
        )
        assert (ends and ends[1]) == (None if over else to_the_minute(incident.last_at + 900))


async def test_a_silence_opens_after_the_grace_and_ends_with_the_next_call(desk: Desk) -> None:
    rhythm = {"rows": ["Mon-Sun 0-24: 15"], "timeZone": "UTC"}
    patient = rhythm | {"rows": ["Mon-Sun 0-24: 1500"]}
    webhook_id = await desk.webhook(alarms={"rhythm": patient})
    clock = Clock(desk, -86_400 * 2)  # the setting is older
    clock.now -= clock.now % 600
    await clock.passes(0)
    await webhooks.change(desk.gateway, ACTOR, webhook_id, {"alarms": {"rhythm": rhythm}})
    # The second silence has to last half as long again: the first one ended by itself.
    for number, quiet in ((1, 15), (2, 23)):
        await desk.call(webhook_id, {"n": number}, at=clock.now)
        last = clock.now
        for minute in range(1, 31):
            await clock.passes(60)
            assert len(await clock.open()) == (minute > quiet)
        await desk.call(webhook_id, {"n": number}, at=clock.now)
        await clock.passes(60)
        one, *_ = await told(desk)
        assert (one.kind, one.closed_because) == ("silence", "calls come again")
        assert float(one.first_at) == last - last % 60


async def test_a_gateway_that_was_away_says_what_went_wrong_before_and_not_that_nobody_called(
    desk: Desk,
) -> None:
    rhythm = {"rows": ["Mon-Sun 0-24: 15"], "timeZone": "UTC"}
    webhook_id, broken = await desk.webhook(alarms={"rhythm": rhythm}), await desk.webhook()
    clock = Clock(desk, -86_400 * 2)
    await desk.call(webhook_id, {"n": 1}, at=clock.now)
    await clock.passes(15)
    for _ in range(3):
        await desk.call(broken, b"no JSON", at=clock.now)
    await clock.passes(3 * HOUR)  # nobody judged meanwhile, so nobody took calls
    assert [one.webhook_id for one in await clock.open()] == [broken]
    for _ in range(20):
        await clock.passes(60)
    assert [one.kind for one in await clock.open()] == ["silence", "rejected"]


async def test_a_disk_with_little_room_is_told_until_it_has_more(house: House) -> None:
    clock = Clock(house, 0)
    clock.room = 8 * GIB, 100 * GIB  # less than a tenth, and enough for long
    await clock.passes(0)
    assert await clock.open() == []
    clock.room = GIB, 100 * GIB
    await clock.passes(HOUR)
    await clock.passes(15)
    assert [one.reasons for one in await clock.open()] == [{"disk": 1}]
    clock.room = 50 * GIB, 100 * GIB
    await clock.passes(HOUR)
    await clock.passes(15)
    assert [one.closed_because for one in await told(house)] == ["all is well again"]


async def test_an_old_second_secret_is_told_until_it_is_gone(desk: Desk) -> None:
    both = {"method": "token", "token": "the main one", "secondToken": "the second one"}
    webhook_id = await desk.webhook(authentication=both)
    clock = Clock(desk, -86_400 * 31)
    await clock.passes(0)
    (incident,) = await clock.open()
    assert (incident.webhook_id, incident.kind) == (webhook_id, "gateway")
    await webhooks.promote(desk.gateway, ACTOR, webhook_id, now=True)
    await clock.passes(HOUR)
    assert await clock.open() == []


@on_both
async def test_of_two_processes_that_judge_one_opens_and_the_other_goes_on_when_it_is_gone(
    desk: Desk, settings: Settings
) -> None:
    webhook_id = await desk.webhook(authentication=GITHUB)
    clock = Clock(desk, HOUR)
    async with opened(settings) as second:
        second.clock = lambda: clock.now
        other = AlarmLoop(second)
        wrong = signed("another secret", b"{}")
        for _ in range(4):
            await desk.call(webhook_id, b"{}", wrong, at=clock.now)
        judged = [judge._judge_calls(clock.now) for judge in (clock.judge, other)]
        await asyncio.gather(*judged)  # as if one had lost its turn while it judged
        for _ in range(3):
            clock.now += 20
            await asyncio.gather(clock.judge.round(), other.round())
        assert [one.count for one in await clock.open()] == [4]
        await desk.call(webhook_id, b"{}", wrong, at=clock.now)
        clock.now += 20
        await other.round()
        assert [one.count for one in await clock.open()] == [5]
        await webhooks.change(desk.gateway, ACTOR, webhook_id, {"alarms": {"rejected": False}})
        await clock.passes(20)
        assert [one.closed_because for one in await told(desk)] == ["this alarm was turned off"]


async def test_a_stranger_who_keeps_an_incident_open_does_not_hide_that_good_calls_stop(desk: Desk) -> None:
    webhook_id = await desk.webhook(authentication=GITHUB)
    clock = Clock(desk, 10 * HOUR)

    async def call(secret: str) -> None:
        await desk.call(webhook_id, b"{}", signed(secret, b"{}"), at=clock.now)

    for _ in range(3):
        await call("a guess of a stranger")
    await clock.passes(20)
    for _ in range(3):
        await call(GITHUB["secret"])
        await clock.passes(300)
        await call("a guess of a stranger")
    await clock.passes(20)
    (incident,) = await clock.open()
    await acknowledge(desk.gateway, ACTOR, incident.id)
    await clock.passes(300)
    await call("a secret that has expired")
    assert [one.detail for one in await clock.open()] == [""]
    await clock.passes(600)
    (again,) = await clock.open()
    assert again.detail.startswith("No call has been accepted since ") and again.acknowledged_at is None
    assert again.detail in (await show(desk.gateway, ACTOR, again.id)).sentence
    for _ in range(3):  # it stays to the minute where the minutes of long ago are summed up
        await clock.passes(HOUR)
        await call("a secret that has expired")
        await desk.store.volumes.roll_up(clock.now)
    await clock.passes(20)
    assert [one.detail for one in await clock.open()] == [again.detail]
    await acknowledge(desk.gateway, ACTOR, incident.id)
    await call(GITHUB["secret"])
    await call("a guess of a stranger")
    await clock.passes(20)
    assert [(one.detail, one.acknowledged_at is None) for one in await clock.open()] == [("", False)]
    await clock.passes(4 * HOUR)
    (stopped,) = await clock.open()
    assert stopped.detail > again.detail and stopped.acknowledged_at is None
    assert set(reasons_to_tell(stopped)) - set(reasons_to_tell(again)) == {stopped.detail}


async def test_bad_calls_of_a_quarter_that_is_summed_up_close_it_no_sooner(desk: Desk) -> None:
    webhook_id = await desk.webhook(payloadLimitBytes=20)
    clock = Clock(desk, 10 * HOUR)
    clock.now -= clock.now % 900 - 14 * 60  # the last minute of a quarter
    for _ in range(3):
        await desk.call(webhook_id, b"no JSON", at=clock.now)
    await clock.passes(15)
    assert [float(one.first_at) for one in await clock.open()] == pytest.approx([clock.now - 15], abs=0.002)
    bad = clock.now - 15
    await clock.passes(180)
    await desk.call(webhook_id, {"n": 1}, at=clock.now)
    while await clock.open():
        await clock.passes(60)
        await desk.store.volumes.roll_up(clock.now)
    assert clock.now - bad >= 15 * 60


async def test_rejected_calls_are_no_silence(desk: Desk) -> None:
    rhythm = {"rows": ["Mon-Sun 0-24: 10"], "timeZone": "UTC"}
    webhook_id = await desk.webhook(payloadLimitBytes=20, alarms={"rhythm": rhythm})
    clock = Clock(desk, -86_400 * 2)
    await desk.call(webhook_id, {"n": 1}, at=clock.now)
    for _ in range(20):
        await desk.call(webhook_id, b"no JSON", at=clock.now)
        await clock.passes(60)
    assert [one.kind for one in await clock.open()] == ["rejected"]
