"""The webhooks as a process knows them, and how it follows what others change."""

import pytest
from structlog.testing import capture_logs

from postern.core.history.invocation import StoreUnavailable
from postern.usecases.runtime.directory import Directory
from support.house import House


def another(house: House) -> Directory:
    """As another process on the same database has it."""
    here = house.gateway.runtime.directory
    return Directory(house.gateway.store.webhooks, here._compile)


async def test_that_changes_are_not_followed_is_reported_once_and_over_when_they_are(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = another(house)
    trouble: Exception = StoreUnavailable("away\n\tIs it running?")

    async def away(epoch: int) -> None:
        raise trouble

    with monkeypatch.context() as patched, capture_logs() as lines:
        patched.setattr(house.gateway.store.webhooks, "changed_since", away)
        for _ in range(2):
            await there._refresh_or_log()
            assert there.trouble == "away"
        trouble = ValueError()
        await there._refresh_or_log()
        assert there.trouble == "ValueError"
    assert [(one["event"], one["exc_info"]) for one in lines] == [
        ("changes to webhooks are not followed", False)
    ]
    await there._refresh_or_log()
    assert there.trouble is None
