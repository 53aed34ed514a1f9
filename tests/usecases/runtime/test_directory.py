"""The webhooks as a process knows them, and how it follows what others change."""

import pytest
from structlog.testing import capture_logs

from postern.core.history.invocation import StoreUnavailable
from postern.usecases.runtime.directory import Directory
from postern.usecases.webhooks import webhooks
from support.house import OWNER, House

pytestmark = pytest.mark.anyio


def code_of(webhook: object) -> str:
    return str(webhook.url).rpartition("/")[2]  # type: ignore[attr-defined]


def another(house: House) -> Directory:
    """As another process on the same database has it."""
    here = house.gateway.runtime.directory
    return Directory(house.gateway.store.webhooks, here._compile)


async def test_a_webhook_is_found_by_its_code_and_its_id_until_it_is_deleted(house: House) -> None:
    there = another(house)
    webhook, kept = await house.webhook(), await house.webhook()
    assert there.by_id(webhook.id) is None, "not before it was looked"
    await there.refresh()
    found = there.by_code(code_of(webhook))
    assert found is not None
    assert found is there.by_id(webhook.id)
    assert (found.id, len(there), there.knows(code_of(webhook)), there.knows("none")) == (
        webhook.id,
        2,
        True,
        False,
    )
    assert {one.id for one in there.listed()} == {webhook.id, kept.id}
    await there.refresh()
    assert there.by_id(webhook.id) is found, "what has not changed is not read again"
    await webhooks.change(house.gateway, OWNER, webhook.id, {"name": "Another"})
    await there.refresh()
    listed = there.listed_by_id(webhook.id)
    assert listed is not None and listed.name == "Another"
    await webhooks.remove(house.gateway, OWNER, webhook.id)
    await there.refresh()
    assert (there.by_id(webhook.id), there.by_code(code_of(webhook))) == (None, None)
    assert (there.listed_by_id(webhook.id), there.knows(code_of(webhook)), len(there)) == (None, False, 1)


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
