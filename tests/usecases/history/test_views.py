"""What an answer about a call says of its runs."""

from dataclasses import replace

import msgspec
import pytest

from postern.core.history.invocation import Delivery
from postern.usecases.history.views import summary_of
from support.house import House

pytestmark = pytest.mark.anyio


async def test_what_became_of_the_runs_is_told_only_where_there_are_some(house: House) -> None:
    webhook = await house.webhook()
    invocation = (await house.call(webhook)).json["invocationId"]
    await house.deliver()
    story = await house.gateway.store.history.get(invocation)
    assert story is not None

    def told(**changes: object) -> object:
        newest: Delivery = msgspec.structs.replace(story.deliveries[-1], **changes)
        return summary_of(replace(story, deliveries=[newest])).run_state

    assert told(state="started", runs=1, ask_at=5.0) == "running"
    assert told(state="started", runs=1, ask_at=None) == "unknown"
    assert told(state="started", runs=0) is None
    assert told(state="failed", ended_at=7.0) == "failed"
    assert told(state="failed", ended_at=None) is None  # it could not be started
    assert told(state="completed", ended_at=7.0) == "completed"
    assert told(state="queued") is None


async def test_that_no_workflow_wanted_a_call_is_told(house: House) -> None:
    webhook = await house.webhook()
    heard = []
    for house.engine.nobody_listens in (True, False):
        await house.call(webhook)
        await house.deliver()
        heard.append((await house.history())[0].nobody_listens)
    assert heard == [True, False]
