"""The webhooks as a process knows them, and how it follows what others change."""

import asyncio

import pytest
from structlog.testing import capture_logs

from postern.core.history.invocation import StoreUnavailable
from postern.core.webhooks.stored import StoredWebhook
from postern.core.webhooks.webhook import Webhook
from postern.usecases.runtime import directory as module
from postern.usecases.runtime.directory import Directory
from postern.usecases.webhooks import webhooks
from support.house import OWNER, House
from support.waiting import PATIENCE

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


async def test_a_webhook_that_cannot_be_compiled_is_named_and_its_callers_are_to_come_back(
    house: House,
) -> None:
    good, bad = await house.webhook(name="Good"), await house.webhook(name="Bad")
    compile_webhook, fails = house.gateway.runtime.directory._compile, True

    def compiled(stored: StoredWebhook) -> Webhook:
        if stored.id == bad.id and fails:
            raise ValueError
        return compile_webhook(stored)

    there = Directory(house.gateway.store.webhooks, compiled)
    with capture_logs() as lines:
        await there.refresh()
    assert [(one["webhook"], one["error"]) for one in lines] == [(bad.id, "ValueError")]
    assert there.not_served[bad.id].reason == "ValueError"
    assert (there.by_id(bad.id), there.knows(code_of(bad)), len(there)) == (None, True, 1)
    assert {one.id for one in there.listed()} == {good.id, bad.id}
    fails = False
    await webhooks.change(house.gateway, OWNER, bad.id, {"name": "Mended"})
    await there.refresh()
    assert (there.not_served, there.by_id(bad.id) is not None, len(there)) == ({}, True, 2)
    await webhooks.remove(house.gateway, OWNER, bad.id)
    await there.refresh()
    assert not there.knows(code_of(bad))


async def test_a_name_stands_for_a_webhook_where_no_other_one_has_it(house: House) -> None:
    directory = house.gateway.runtime.directory
    one = await house.webhook(name="Orders")
    shown = directory.listed_by_id(one.id)
    assert shown is not None
    assert (directory.called("oRDERS"), directory.called("Order"), directory.typed(shown)) == (
        [one.id],
        [],
        "Orders",
    )
    other = await house.webhook(name="ORDERS")
    assert sorted(directory.called("orders")) == sorted([one.id, other.id])
    assert directory.typed(shown) == one.id
    await webhooks.change(house.gateway, OWNER, other.id, {"name": "Refunds"})
    assert directory.typed(shown) == "Orders"
    assert directory.groups() is directory.groups(), "counted once after each change"


async def test_it_looks_at_once_where_somebody_changed_something(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOOK_EVERY", 3600.0)
    there = another(house)
    following = asyncio.create_task(there.follow())
    async with asyncio.timeout(PATIENCE):
        while there._epoch < 0:
            await asyncio.sleep(0.001)
        webhook = await house.webhook()
        there.refresh_soon()
        while there.by_id(webhook.id) is None:
            await asyncio.sleep(0.001)
    assert not there._changed.is_set()
    following.cancel()
    await asyncio.wait([following])


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
