"""The gateway's end of the socket, with nobody at the other end."""

import asyncio
from typing import Any

import pytest

from postern.core.deliveries.delivery import EngineUnavailable
from postern.engines.embedded import frames
from postern.engines.embedded.link import Link

pytestmark = pytest.mark.anyio

NO_ANSWER = r"the engine process did not answer within 0\.01 seconds"


class Wire:
    def __init__(self) -> None:
        self.sent: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.sent.append(data)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


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


async def test_everybody_who_waits_hears_that_the_process_has_ended(link: Link) -> None:
    asked: list[Any] = [asyncio.create_task(link.ask(question, 60.0)) for _ in range(3)]
    await asyncio.sleep(0)
    link.connection_lost(None)
    for one in asked:
        with pytest.raises(EngineUnavailable, match="has ended"):
            await one
    with pytest.raises(EngineUnavailable, match="has ended"):
        await link.ask(question, 60.0)
