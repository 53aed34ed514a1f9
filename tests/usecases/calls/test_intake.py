"""A call on its way in: what is asked of its head, and how much of its body is kept meanwhile."""

from typing import Any

import pytest
from structlog.testing import capture_logs

from postern.core.address import NOBODY, ClientAddresses
from postern.core.calls.arriving import ArrivingBytes, Body
from postern.observe.metrics import Numbers
from postern.usecases.calls import intake as module
from postern.usecases.calls.intake import GUESSING, Intake
from support.house import AnsweredCall, House

JSON = (b"content-type", b"application/json")


@pytest.fixture
def intake(house: House) -> Intake:
    return Intake(house.gateway, ClientAddresses(NOBODY, "X-Forwarded-For"))


def begun(
    intake: Intake, webhook: Any, *headers: tuple[bytes, bytes], peer: str = "192.0.2.1", slash: bytes = b""
) -> AnsweredCall:
    """A call whose head has come."""
    call = AnsweredCall(intake)
    path = b"/webhook/" + webhook.url.rpartition("/")[2].encode() + slash
    call.head("POST", path, b"", (JSON, *headers), peer=peer)
    return call


async def heard(call: AnsweredCall) -> int:
    assert call.settled
    return (await call.answered).status


async def test_a_body_takes_room_until_it_has_come_in_whole(house: House, intake: Intake) -> None:
    call = begun(intake, await house.webhook())
    assert call.piece(b'{"n":') and call.piece(b"1}")
    assert (intake.arriving.held, call.settled) == (7, False)
    call.end()
    assert (intake.arriving.held, await heard(call), call.unread) == (0, 200, False)
    (item,) = await house.history()
    assert item.body_size == 7


async def test_a_body_that_comes_at_once_as_it_was_promised_takes_no_room(
    house: House, intake: Intake
) -> None:
    call = begun(intake, await house.webhook(), (b"content-length", b"7"))
    assert call.piece(b'{"n":1}')
    assert intake.arriving.held == 0
    call.end()
    assert await heard(call) == 200
    longer = begun(intake, await house.webhook(), (b"content-length", b"8"))
    assert longer.piece(b'{"n":1}')
    assert intake.arriving.held == 7


async def test_whoever_goes_away_gives_its_room_back(house: House, intake: Intake) -> None:
    call = begun(intake, await house.webhook())
    call.piece(b'{"n":')
    call.drop()
    call.drop()  # as a connection that is lost while it is being closed does
    assert intake.arriving.held == 0


@pytest.mark.parametrize("more", [0, 1])
async def test_one_byte_too_many_is_enough(house: House, intake: Intake, more: int) -> None:
    webhook = await house.webhook(payloadLimitBytes=1024)
    promised = begun(intake, webhook, (b"content-length", b"%d" % (1024 + more)))
    assert promised.settled == promised.unread == bool(more)
    counted = begun(intake, webhook)
    assert counted.piece(b" " * 1000)
    assert counted.piece(b" " * (24 + more)) is not bool(more)
    assert counted.settled == counted.unread == bool(more)
    if more:
        assert (await heard(promised), await heard(counted), intake.arriving.held) == (413, 413, 0)


async def test_a_promise_that_is_no_number_is_none(house: House, intake: Intake) -> None:
    call = begun(intake, await house.webhook(), (b"content-length", b"many"))
    call.piece(b"{}")
    call.end()
    assert await heard(call) == 200
    endless = begun(intake, await house.webhook(), (b"content-length", b"9" * 5_000))
    assert await heard(endless) == 413


async def test_where_the_room_is_taken_a_caller_is_to_come_back(
    house: House, intake: Intake, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr(module.time, "monotonic", lambda: now)
    intake.arriving = ArrivingBytes(40)
    webhook = await house.webhook()
    call = begun(intake, webhook)
    assert call.piece(b"1")
    with capture_logs() as lines:
        assert not call.piece(b"x" * 100)
        assert (await heard(call), call.unread) == (503, True)
        assert intake.arriving.held == 0, "its own beginning is given back"
        for seconds in (1.0, module.LOG_EVERY - 1.1, 0.2):
            now += seconds
            assert not begun(intake, webhook).piece(b"x" * 100)
    logged = [(one["calls"], one["webhook"], one["address"]) for one in lines]
    assert logged == [(1, webhook.id, "192.0.2.1"), (3, webhook.id, "192.0.2.1")]
    assert await house.history() == [], "what was not read is nothing that has happened"


async def test_a_slash_at_the_end_is_the_same_url_and_any_other_end_is_none(
    house: House, intake: Intake
) -> None:
    webhook = await house.webhook()
    before = Numbers.unknown_codes._value.get()
    assert not begun(intake, webhook, slash=b"/").settled
    assert Numbers.unknown_codes._value.get() == before
    unknown = begun(intake, webhook, slash=b"/x")
    assert (await heard(unknown), unknown.unread) == (404, True)
    assert Numbers.unknown_codes._value.get() == before + 1


async def test_while_the_process_ends_nobody_begins_to_wait(house: House, intake: Intake) -> None:
    waits, ordinary = await house.webhook(synchronousResponse={"enabled": True}), await house.webhook()
    house.gateway.runtime.begin_to_end()
    assert await heard(begun(intake, waits)) == 503
    assert not begun(intake, ordinary).settled


async def test_all_that_guess_share_the_room_of_one_caller(
    house: House, intake: Intake, monkeypatch: pytest.MonkeyPatch
) -> None:
    webhook = await house.webhook(authentication={"method": "token", "token": "whk_0123456789abcdef"})
    sharers: list[str] = []
    take = intake.arriving.take

    def noted(body: Body, size: int) -> bool:
        sharers.append(body.caller)
        return take(body, size)

    monkeypatch.setattr(intake.arriving, "take", noted)
    for _ in range(21):
        call = begun(intake, webhook, (b"x-api-key", b"whk_guess"))
        if not call.settled:
            call.piece(b"{}")
            call.end()
        await heard(call)
    await heard(guessing) if (guessing := begun(intake, webhook)).settled else guessing.piece(b"{}")
    begun(intake, webhook, peer="192.0.2.9").piece(b"{}")
    assert (sharers[0], sharers[-2], sharers[-1]) == ("192.0.2.1", GUESSING, "192.0.2.9")
