"""The gateway's end of the socket, with nobody at the other end."""

import asyncio
from typing import Any

import pytest

from postern.core.answer import InvalidResponse
from postern.core.deliveries.delivery import EngineUnavailable
from postern.core.history.invocation import StoreUnavailable
from postern.engines.embedded import frames
from postern.engines.embedded.link import LARGE, Link
from support.waiting import PATIENCE

NO_ANSWER = r"the engine process did not answer within 0\.01 seconds"


class Wire:
    def __init__(self) -> None:
        self.sent: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.sent.append(data)


@pytest.fixture
async def link() -> Link:
    link = Link()
    link.connection_made(Wire())
    return link


def question(id: int) -> frames.Forget:
    return frames.Forget(id, [])


async def test_who_is_not_answered_in_time_hears_so_and_a_late_reply_harms_nobody(link: Link) -> None:
    with pytest.raises(EngineUnavailable, match=NO_ANSWER) as given_up:
        await asyncio.wait_for(link.ask(question, 0.01), 20)
    assert given_up.value.retry_after == 5.0
    link.data_received(frames.encode(frames.Done(1)))
    asked = asyncio.create_task(link.ask(question, 60.0))
    await asyncio.sleep(0)
    link.data_received(frames.encode(frames.Done(2)))
    assert (await asked).id == 2


async def test_nor_does_anybody_wait_for_ever_who_cannot_send(link: Link) -> None:
    link.pause_writing()
    with pytest.raises(EngineUnavailable, match=NO_ANSWER):
        await link.ask(question, 0.01)


async def test_a_question_is_sent_on_when_the_other_end_takes_more(link: Link) -> None:
    link.pause_writing()
    asked = asyncio.create_task(link.ask(question, 60.0))
    await asyncio.sleep(0)
    link.data_received(frames.encode(frames.Done(1)))
    await asyncio.sleep(0)
    assert not asked.done(), "it does not wait until there is room"
    link.resume_writing()
    assert (await asked).id == 1


async def test_what_is_said_in_one_round_of_the_loop_is_one_message_in_its_order(link: Link) -> None:
    wire = Wire()
    link.connection_made(wire)
    small = [frames.AnsweredFrame(number) for number in range(3)]
    large = frames.Forget(4, ["x" * LARGE])
    for one in small[:2]:
        link.send(one)
    await asyncio.sleep(0)
    assert wire.sent == [b"".join(map(frames.encode, small[:2]))]
    link.send(small[2])
    link.send(large)
    assert wire.sent[1:] == [frames.encode(small[2]) + frames.encode(large)], "a large one was kept"
    await asyncio.sleep(0)
    assert len(wire.sent) == 2


async def test_what_was_to_be_said_to_a_process_that_has_ended_is_let_go_of(link: Link) -> None:
    wire = Wire()
    link.connection_made(wire)
    link.send(frames.AnsweredFrame(1))
    link.connection_lost(None)
    await asyncio.sleep(0)
    assert wire.sent == []


async def test_everybody_who_waits_hears_that_the_process_has_ended(link: Link) -> None:
    asked: list[Any] = [asyncio.create_task(link.ask(question, 60.0)) for _ in range(3)]
    await asyncio.sleep(0)
    link.connection_lost(None)
    for one in asked:
        with pytest.raises(EngineUnavailable, match="has ended"):
            await one
    with pytest.raises(EngineUnavailable, match="has ended"):
        await link.ask(question, 60.0)


@pytest.mark.parametrize(
    ("came_of_it", "told"),
    [
        (True, frames.AnsweredFrame(7, taken=True)),
        (False, frames.AnsweredFrame(7)),
        (InvalidResponse("status", "no status"), frames.AnsweredFrame(7, refused="no status")),
        (StoreUnavailable("full"), frames.AnsweredFrame(7, again=True)),
        (RuntimeError("a secret"), frames.AnsweredFrame(7, refused="internal: RuntimeError")),
    ],
)
async def test_a_workflow_hears_what_became_of_its_answer(
    came_of_it: bool | Exception, told: frames.AnsweredFrame
) -> None:
    async def take(key: str, status: Any, headers: Any, body: Any) -> bool:
        assert (key, status, headers, body) == ("inv.1", 200, {}, "x")
        if isinstance(came_of_it, Exception):
            raise came_of_it
        return came_of_it

    assert await reply_to('{"status": 200, "headers": {}, "body": "x"}', Link(take)) == told


async def test_nor_is_an_answer_that_cannot_be_read_left_without_a_reply(link: Link) -> None:
    told = frames.AnsweredFrame(7, refused="internal: JSONDecodeError")
    assert await reply_to("no document", link) == told


async def reply_to(document: str, link: Link) -> frames.FromGateway:
    wire = Wire()
    link.connection_made(wire)
    link.data_received(frames.encode(frames.AnswerFrame(7, "inv.1", document)))
    async with asyncio.timeout(PATIENCE):
        while not wire.sent:
            await asyncio.sleep(0)
    (sent,) = wire.sent
    return frames.from_gateway(sent[frames.LENGTH.size :])
