"""What a process knows of itself: who waits, which rejected calls pile up, and whom it lets wait when it is told to end."""

import pytest

from postern.core.answer import WorkflowResponse
from postern.core.operations.retention import REJECTED_BYTES
from postern.core.problems import Refused
from postern.usecases.runtime import process
from postern.usecases.runtime.process import TRIM_AFTER, Rejections, Waiters
from support.house import OWNER, House

FIRST, SECOND = WorkflowResponse(201, (), b"first"), WorkflowResponse(202, (), b"second")


def test_the_first_answer_is_the_one_that_is_handed_on() -> None:
    waiters = Waiters()
    with waiters.waiting("inv_1.1") as wait:
        waiters.wake("inv_1.1")
        assert wait.answer is None
        waiters.wake("inv_1.1", FIRST)
        waiters.wake("inv_1.1", SECOND)
        waiters.wake_all()
        assert wait.answer is FIRST


def test_a_webhook_is_trimmed_after_so_many_bytes_and_until_then_takes_no_more_than_there_is_room() -> None:
    """So that a flood of rejected calls is trimmed at once."""
    rejections = Rejections()
    for _ in range(2):
        assert rejections.find_room("wh_1", TRIM_AFTER - 1) and rejections.find_room("wh_2", 1)
        assert (rejections.any_full.is_set(), rejections.take()) == (False, [])
        assert rejections.find_room("wh_1", REJECTED_BYTES - TRIM_AFTER + 1)
        assert not rejections.find_room("wh_1", 1)
        assert rejections.any_full.is_set()
        assert (rejections.take(), rejections.any_full.is_set(), rejections.take()) == (["wh_1"], False, [])


async def test_who_only_watches_is_sent_away_at_once_and_who_waits_has_a_while(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime, now = house.gateway.runtime, 1000.0
    monkeypatch.setattr(process.time, "monotonic", lambda: now)
    watcher = runtime.live.join(OWNER, None)
    with runtime.waiters.waiting("inv_1.1") as wait:
        with runtime.listeners.waiting("lsn_1") as handed:
            assert runtime.begin_to_end() == 1
            assert (runtime.ending, watcher.closed, handed.is_set()) == (True, True, True)
        with pytest.raises(Refused):
            runtime.live.join(OWNER, None)
        now += process.PATIENCE
        assert runtime.begin_to_end() == 1
        assert (runtime.waiters.time_is_up, wait.is_set()) == (False, False)
        now += 1
        assert runtime.begin_to_end() == 1
        assert (runtime.waiters.time_is_up, wait.is_set()) == (True, True)
    assert runtime.begin_to_end() == 0
