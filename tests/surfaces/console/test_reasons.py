"""The one sentence that lists and pages say of a call."""

from pathlib import Path

import pytest

from postern.core.deliveries.delivery import End, EngineRejected, EngineUnavailable, Started, Trigger
from postern.surfaces.console.views.history.sentences import reason
from postern.usecases.history import history
from postern.usecases.history.endings import EndingsLoop
from support.house import OWNER, a_house


@pytest.mark.parametrize(
    ("trouble", "sentence"),
    [
        (
            EngineUnavailable("orders.py, line 1: no module"),
            "Stored; its workflow could not be started yet, and is tried again: orders.py, line 1: no module.",
        ),
        (
            EngineRejected("the engine answered 404: it is not active."),
            "Accepted, but its workflow could not be started: the engine answered 404: it is not active.",
        ),
    ],
)
async def test_a_call_whose_workflow_could_not_be_started_says_so_and_why(
    tmp_path: Path, trouble: Exception, sentence: str
) -> None:
    async def start(_: Trigger) -> Started:
        raise trouble

    async with a_house(tmp_path) as house:
        house.engine.start = start  # type: ignore[method-assign]
        await house.call(await house.webhook())
        await house.dispatcher.round()
        await house.dispatcher.finish()
        (call,) = await house.history()
        assert reason(await history.show(house.gateway, OWNER, call.id)) == sentence


@pytest.mark.parametrize(
    ("workflows", "sentence"),
    [
        (("Echo",), "Echo failed: as asked."),
        (("Echo", "Mail"), "Echo and Mail failed: Echo: as asked."),
    ],
)
async def test_a_workflow_that_failed_is_named_once(
    tmp_path: Path, workflows: tuple[str, ...], sentence: str
) -> None:
    """Engines elsewhere name it in the error."""

    async def start(_: Trigger) -> Started:
        return Started(len(workflows), workflows)

    async with a_house(tmp_path) as house:
        house.engine.start = start  # type: ignore[method-assign]
        heard = await house.call(await house.webhook())
        await house.dispatcher.round()
        await house.dispatcher.finish()
        (call,) = await house.history()
        (delivery,) = (await history.show(house.gateway, OWNER, call.id)).deliveries
        house.gateway.runtime.endings.ended(delivery.key, End("failed", 0.0, "Echo: as asked"))
        await EndingsLoop(house.gateway).write()
        assert reason(await history.show(house.gateway, OWNER, call.id)) == sentence
        assert heard.status == 200
