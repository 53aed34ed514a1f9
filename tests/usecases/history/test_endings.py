"""Ends that were heard of and are on their way to where they are written down."""

import pytest

from postern.core.deliveries.delivery import End, Started
from postern.usecases.history import history
from postern.usecases.history.endings import EndingsLoop
from support.desk import ACTOR, Desk

pytestmark = pytest.mark.anyio


async def test_an_end_whose_start_is_not_written_down_is_looked_at_again_without_hurry(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A start may be tried for days, and each look is a commit: news would make one follow another at once."""
    invocation = await desk.accepted(await desk.webhook(), {})
    (delivery,) = await desk.store.deliveries.claim(desk.gateway.clock(), 60.0, 1)
    endings, loop = desk.gateway.runtime.endings, EndingsLoop(desk.gateway)
    looks = 0
    note = desk.store.endings.note

    async def counted(*given: object) -> set[str]:
        nonlocal looks
        looks += 1
        found: set[str] = await note(*given)
        return found

    monkeypatch.setattr(desk.store.endings, "note", counted)
    endings.ended(delivery.key, End("completed", desk.gateway.clock()))
    assert endings.news.is_set()
    for round in (1, 2):
        await loop.write()
        # Nothing wakes the loop before its second is over.
        assert (looks, endings.news.is_set()) == (round, False)
    await desk.store.deliveries.started(delivery, Started(1, ("flow",)), desk.gateway.clock())
    await loop.write()
    assert (await history.show(desk.gateway, ACTOR, invocation)).status == "completed"
    await loop.write()
    assert looks == 3
