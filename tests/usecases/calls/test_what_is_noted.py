"""What is written down of an answer, besides the call itself: when it was given, and whether anybody was there."""

import pytest

from postern.core.address import NOBODY, ClientAddresses
from postern.core.answer import CallerAnswer
from postern.core.history.invocation import AnswerHeard
from postern.usecases.calls.intake import Intake
from postern.usecases.calls.receive import CallerState
from postern.usecases.runtime.endings import Noticed
from support.house import AnsweredCall, HasUrl, House


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
    began = house.gateway.clock()
    house.gateway.clock = lambda: began
    call.head("POST", path, b"", ((b"content-type", b"application/json"),), peer="127.0.0.1")
    call.piece(b"{}")
    call.end()
    house.gateway.clock = lambda: began + seconds
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
