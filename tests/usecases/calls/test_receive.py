"""From the verdict to the answer: what is counted and noted, who is told, and what is left for whom."""

from collections.abc import Callable

import pytest
from structlog.testing import capture_logs

from postern.core.address import NOBODY, ClientAddresses
from postern.core.answer import CallerAnswer
from postern.core.history.invocation import AnswerHeard, Receipt, StoreUnavailable
from postern.observe.calls import CallLine, call_counts
from postern.usecases.calls import receive
from postern.usecases.calls.intake import Intake
from postern.usecases.calls.receive import CallerState
from postern.usecases.runtime.endings import Noticed
from support.clock import HeldClock
from support.house import AnsweredCall, HasUrl, House
from support.reply import HttpReply

WAITS = {"enabled": True, "timeoutSeconds": 20}


class Counted:
    """What the metrics say since then."""

    def __init__(self) -> None:
        self._before = self._now()

    @staticmethod
    def _now() -> tuple[dict[tuple[str, str, str], int], dict[bool, int]]:
        return dict(call_counts.calls), {waited: sum(call_counts.within[waited]) for waited in (False, True)}

    def since(self) -> tuple[dict[tuple[str, str], int], int, int]:
        """Calls by outcome and code, how many were answered at once, and how many had waited."""
        (calls, within), (calls_before, before) = self._now(), self._before
        more = {key[1:]: count - calls_before.get(key, 0) for key, count in calls.items()}
        at_once, had_waited = [within[waited] - before[waited] for waited in (False, True)]
        return {key: count for key, count in more.items() if count}, at_once, had_waited


@pytest.fixture
def lines(house: House, monkeypatch: pytest.MonkeyPatch) -> list[CallLine]:
    found: list[CallLine] = []
    monkeypatch.setattr(house.gateway.runtime.call_log, "call", found.append)
    return found


@pytest.fixture
def touched(house: House, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Of which calls those who watch are told."""
    found: list[str] = []
    monkeypatch.setattr(house.gateway.runtime.live, "touch", found.append)
    return found


async def test_a_call_that_is_answered_at_once_is_counted_logged_announced_and_due(
    house: House, lines: list[CallLine], touched: list[str]
) -> None:
    HeldClock(house.gateway)
    webhook = await house.webhook(duplicateProtection={"enabled": True})
    house.gateway.runtime.engine.due.clear()
    counted = Counted()
    call = await house.recorded(webhook, b'{"n":1}')
    assert counted.since() == ({("accepted", "accepted"): 1}, 1, 0)
    assert house.gateway.runtime.engine.due.is_set()
    (line,) = lines
    assert line == CallLine(
        webhook.id, call, "accepted", "accepted", 200, "", "127.0.0.1", 7, webhook.version, line.detail, 0.0
    )
    counted = Counted()
    house.gateway.runtime.engine.due.clear()
    await house.call(webhook, b'{"n":1}')
    await house.call(webhook, b"not json")
    assert counted.since() == ({("duplicate", "duplicate"): 1, ("rejected", "malformed_json"): 1}, 2, 0)
    assert not house.gateway.runtime.engine.due.is_set()
    assert [line.outcome for line in lines] == ["accepted", "duplicate", "rejected"]
    assert [line.status for line in lines] == [200, 200, 400]
    assert set(touched) == {one.id for one in await house.history()}


async def test_who_has_waited_for_the_workflow_is_counted_apart(house: House, lines: list[CallLine]) -> None:
    house.engine.nobody_listens = True
    webhook = await house.webhook(synchronousResponse=WAITS, duplicateProtection={"enabled": True})
    counted = Counted()
    await house.call(webhook, b'{"n":1}')
    assert counted.since() == ({("accepted", "accepted"): 1}, 0, 1)
    counted = Counted()
    await house.call(webhook, b'{"n":1}')  # hears what the first one heard
    assert counted.since() == ({("duplicate", "duplicate"): 1}, 0, 1)
    counted = Counted()
    await house.call(webhook, b"not json")
    assert counted.since() == ({("rejected", "malformed_json"): 1}, 1, 0)


async def test_who_waits_while_the_store_goes_away_is_reported_and_counted_as_that(
    house: House, lines: list[CallLine], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object) -> None:
        raise StoreUnavailable("away")

    monkeypatch.setattr(receive, "await_answer", away)
    webhook = await house.webhook(synchronousResponse=WAITS)
    counted = Counted()
    heard = await house.call(webhook)
    assert (heard.status, heard.json["code"]) == (503, "temporarily_unavailable")
    assert counted.since() == ({("accepted", "temporarily_unavailable"): 1}, 1, 0)
    assert [(line.outcome, line.code, line.status) for line in lines] == [
        ("accepted", "temporarily_unavailable", 503)
    ]


async def called_with(house: House, result: object) -> HttpReply:
    """What a caller hears where the store says that of their call."""

    def record(entry: object, done: Callable[[object], None]) -> None:
        done(result)

    house.gateway.store.record = record  # type: ignore[assignment,method-assign]
    return await house.call(await house.webhook())


async def test_what_is_not_stored_is_reported_counted_and_logged_as_that(
    house: House, lines: list[CallLine]
) -> None:
    counted = Counted()
    heard = await called_with(house, StoreUnavailable("away"))
    assert (heard.status, heard.json["code"]) == (503, "temporarily_unavailable")
    assert counted.since() == ({("not stored", "temporarily_unavailable"): 1}, 1, 0)
    assert [(line.outcome, line.code, line.status) for line in lines] == [
        ("not stored", "temporarily_unavailable", 503)
    ]
    ((_, name, _),) = house.gateway.runtime.endings.take().counted
    assert name == "answer:503"


async def test_a_defect_after_the_call_was_stored_is_a_500_and_no_silence(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise KeyError("planted")

    monkeypatch.setattr(receive.Reception, "_stored", broken)
    with capture_logs() as logged:
        heard = await called_with(house, Receipt(None))
    assert (heard.status, heard.json["code"]) == (500, "internal_error")
    assert [one["event"] for one in logged] == ["a recorded call could not be answered"]


async def test_what_a_stranger_sends_is_cut_where_it_is_only_shown(house: House) -> None:
    webhook = await house.webhook()
    await house.call(webhook, method="X" * 40)
    await house.call(webhook, peer="f" * 100)
    calls = await house.history()
    assert max(len(one.method) for one in calls) == 20
    assert max(len(one.address) for one in calls) == 80


# --- when an answer was given, and whether anybody was there ---------------------------------------------------------


class Call(AnsweredCall):
    """With a caller who may have left."""

    caller: CallerState = "there"

    def _on_answer(self, answer: CallerAnswer) -> CallerState:
        super()._on_answer(answer)
        return self.caller


async def noticed(
    house: House, webhook: HasUrl, caller: CallerState, seconds: float = 0.0
) -> tuple[int, Noticed]:
    """What one call's caller is told, and what is noticed of it where that takes so long."""
    call = Call(Intake(house.gateway, ClientAddresses(NOBODY, "X-Forwarded-For")))
    call.caller = caller
    path = b"/webhook/" + webhook.url.rpartition("/")[2].encode()
    clock = HeldClock(house.gateway)
    call.head("POST", path, b"", ((b"content-type", b"application/json"),), peer="127.0.0.1")
    call.piece(b"{}")
    call.end()
    clock.now += seconds
    status = (await call.answered).status
    return status, house.gateway.runtime.endings.take()


@pytest.mark.parametrize(("caller", "reached"), [("there", None), ("hung up", None), ("gone", False)])
async def test_an_answer_at_once_needs_no_note_unless_nobody_was_there(
    house: House, caller: CallerState, reached: bool | None
) -> None:
    webhook = await house.webhook()
    status, found = await noticed(house, webhook, caller)
    assert [one.reached for one in found.answered] == ([] if reached is None else [reached])
    assert (status, dict(found.counted)) == (200, {(webhook.id, "answer:200", 0): 1})


async def test_an_answer_that_came_late_is_noted_with_its_time(house: House) -> None:
    """A tenth of a second is what nobody waits for."""
    webhook = await house.webhook()
    _, found = await noticed(house, webhook, "there", 0.15)
    (item,) = await house.history()
    assert found.answered == [AnswerHeard(item.id, 200, house.gateway.clock(), True)]
    _, found = await noticed(house, webhook, "there", 0.05)
    assert found.answered == []


@pytest.mark.parametrize(("caller", "reached"), [("there", True), ("hung up", False), ("gone", False)])
async def test_what_a_caller_heard_who_waited_is_always_noted(
    house: House, caller: CallerState, reached: bool
) -> None:
    """Whoever closes their side while they wait has left; whoever does so after their call waits for nothing."""
    webhook = await house.webhook(synchronousResponse={"enabled": True})
    house.engine.nobody_listens = True
    status, found = await noticed(house, webhook, caller)
    assert (status, [(one.status, one.reached) for one in found.answered]) == (200, [(200, reached)])
