"""The clock is set back, or forward: nobody waits for as long as the step."""

import asyncio
from typing import Any

import pytest

from postern.core.deliveries.delivery import LONGEST_WAIT
from postern.usecases.calls.respond import respond
from postern.usecases.deliveries import dispatch
from postern.usecases.deliveries.dispatch import LEASE, catch_up
from support.house import House

HOUR = 3600.0
WAITS = {"enabled": True, "timeoutSeconds": 20}


def step(house: House, seconds: float) -> None:
    before = house.gateway.clock
    house.gateway.clock = lambda: before() + seconds


async def waiting_call(house: House, **response: Any) -> tuple[asyncio.Task[Any], str]:
    """A caller that waits, and the key of what was started for it."""
    webhook = await house.webhook(synchronousResponse={**WAITS, **response})
    call = asyncio.create_task(house.call(webhook))
    while not house.engine.started:
        await asyncio.sleep(0.01)
    return call, next(iter(house.engine.started))


async def test_a_clock_set_back_rejects_no_call(house: House) -> None:
    webhook = await house.webhook(rateLimit={"callsPerSecond": 1, "burst": 2})
    assert (await house.call(webhook)).status == 200
    step(house, -HOUR)
    assert (await house.call(webhook)).status == 200


async def test_a_workflows_answer_counts_though_the_clock_was_set_forward(house: House) -> None:
    call, key = await waiting_call(house)
    step(house, HOUR)
    token = house.gateway.site.response_token(key)
    await respond(house.gateway, key.partition(".")[0], token, status=201, headers={}, body={"ok": True})
    assert (await call).status == 201


@pytest.fixture
def without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the loop, after a start that failed; how long each delivery waits is what is tried."""
    monkeypatch.setattr(dispatch, "LONGEST_PAUSE", 0.0)


@pytest.mark.usefixtures("without_pauses")
@pytest.mark.parametrize("tries", [0, 1, 5])
async def test_what_waits_for_a_retry_does_not_wait_for_the_step_too(house: House, tries: int) -> None:
    webhook = await house.webhook()
    assert (await house.call(webhook)).status == 200
    house.engine.down = True
    for _ in range(tries):
        await house.dispatcher.round()
        step(house, LONGEST_WAIT)
    if not tries:  # claimed by a process that is gone
        await house.gateway.store.deliveries.claim(house.gateway.clock(), LEASE, 1)
    step(house, -2 * LONGEST_WAIT)
    assert await catch_up(house.gateway) == 1
    house.engine.down = False
    step(house, 2 * LEASE)
    await house.deliver()
    assert len(house.engine.started) == 1


@pytest.mark.usefixtures("without_pauses")
async def test_what_waits_as_long_as_it_should_is_left_alone(house: House) -> None:
    assert (await house.call(await house.webhook())).status == 200
    house.engine.down = True
    for _ in range(14):  # until the waits are as long as they get
        await house.dispatcher.round()
        step(house, LONGEST_WAIT)
    step(house, -LONGEST_WAIT)
    assert await catch_up(house.gateway) == 0
