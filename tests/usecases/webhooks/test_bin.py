"""A deleted webhook can be had back for seven days, with everything it was."""

import pytest
from sqlalchemy import select

from postern.core.problems import Refused
from postern.stores.sql.tables import secrets
from postern.usecases.access import audit
from postern.usecases.deliveries import holds
from postern.usecases.operations.retention import prune
from postern.usecases.webhooks import bin, webhooks
from support.clock import HeldClock, later
from support.desk import ACTOR, Desk, on_both
from support.house import OWNER, House

DAY = 86_400
TOKEN = {"X-Api-Key": "a token of the tests"}


async def guarded(house: House) -> str:
    made = await house.webhook(
        authentication={"method": "token", "token": TOKEN["X-Api-Key"]}, fieldMapping={"fieldOne": "n"}
    )
    return made.id


async def test_a_restored_webhook_is_what_it_was(house: House) -> None:
    webhook_id = await guarded(house)
    before = await webhooks.show(house.gateway, OWNER, webhook_id)
    assert (await house.call(before, headers=TOKEN)).status == 200
    before = await webhooks.show(house.gateway, OWNER, webhook_id)
    await webhooks.remove(house.gateway, OWNER, webhook_id)
    assert (await house.call(before, headers=TOKEN)).status == 404
    (binned,) = (await bin.listing(house.gateway, OWNER)).items
    assert (binned.id, binned.name, binned.call_count) == (webhook_id, "Orders", 1)
    assert binned.gone_at - binned.deleted_at == 7 * 86_400

    after = await bin.restore(house.gateway, OWNER, webhook_id)
    assert after.version == before.version + 1
    for field in ("url", "authentication", "field_mapping", "call_count"):
        assert getattr(after, field) == getattr(before, field)
    assert (await house.call(before, headers=TOKEN)).status == 200
    assert (await house.call(before)).status == 401
    assert (await bin.listing(house.gateway, OWNER)).items == []


async def test_what_waited_behind_its_hold_waits_again(desk: Desk) -> None:
    webhook = await desk.webhook()
    await holds.hold(desk.gateway, ACTOR, webhook)
    await desk.accepted(webhook, {"n": 1})
    await webhooks.remove(desk.gateway, ACTOR, webhook)
    await bin.restore(desk.gateway, ACTOR, webhook)
    assert (await holds.release(desk.gateway, ACTOR, webhook)).released == 1


@on_both
async def test_after_seven_days_it_is_gone_and_its_secrets_with_it(desk: Desk) -> None:
    webhook = await desk.webhook(authentication={"method": "token", "token": TOKEN["X-Api-Key"]})
    await webhooks.remove(desk.gateway, ACTOR, webhook)
    later(desk.gateway, 6.9 * DAY)
    assert (await prune(desk.gateway, ACTOR))["webhooks"] == 0
    assert len(await desk.rows(select(secrets.c.id))) == 1
    later(desk.gateway, 0.2 * DAY)
    assert (await prune(desk.gateway, ACTOR))["webhooks"] == 1
    assert (await prune(desk.gateway, ACTOR))["webhooks"] == 0
    assert await desk.rows(select(secrets.c.id)) == []
    with pytest.raises(Refused, match="in the bin"):
        await bin.restore(desk.gateway, ACTOR, webhook)


async def test_what_is_not_in_the_bin_cannot_be_taken_out_of_it(house: House) -> None:
    webhook_id = await guarded(house)
    for action in (bin.restore, bin.delete_for_good):
        with pytest.raises(Refused, match="in the bin"):
            await action(house.gateway, OWNER, webhook_id)
    await webhooks.remove(house.gateway, OWNER, webhook_id)
    await bin.delete_for_good(house.gateway, OWNER, webhook_id)
    with pytest.raises(Refused, match="in the bin"):
        await bin.restore(house.gateway, OWNER, webhook_id)


async def test_the_bin_is_reported_page_by_page_the_last_deleted_first(house: House) -> None:
    clock = HeldClock(house.gateway)
    began, made = clock.now, []
    for number in range(3):
        clock.now = began + number
        made.append(await house.webhook(name=f"Number {number}"))
        await webhooks.remove(house.gateway, OWNER, made[-1].id)

    async def page(limit: int, cursor: str | None = None) -> tuple[list[str], bool, int]:
        found = await bin.listing(house.gateway, OWNER, limit, cursor)
        return [one.name for one in found.items], found.next_cursor is not None, found.total

    assert await page(2) == (["Number 2", "Number 1"], True, 3)
    assert await page(2, made[1].id) == (["Number 0"], False, 3)
    assert await page(3) == (["Number 2", "Number 1", "Number 0"], False, 3)
    assert await page(0) == await page(-1) == await page(1) == (["Number 2"], True, 3)
    (one,) = (await bin.listing(house.gateway, OWNER, only=made[1].id)).items
    assert (one.id, one.url, one.call_count) == (made[1].id, made[1].url, 0)
    assert (one.deleted_at, one.gone_at) == (began + 1, began + 1 + 7 * 86_400)


async def test_what_is_done_with_the_bin_is_noted_and_done_once(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    webhook_id = await guarded(house)
    await webhooks.remove(house.gateway, OWNER, webhook_id)
    house.gateway.runtime.engine.due.clear()
    await bin.restore(house.gateway, OWNER, webhook_id)
    assert house.gateway.runtime.engine.due.is_set(), "what it holds may be due"
    await webhooks.remove(house.gateway, OWNER, webhook_id)
    await bin.delete_for_good(house.gateway, OWNER, webhook_id)
    notes = (await audit.listing(house.gateway, OWNER, 4, None, webhook_id)).items
    for note, action in zip(notes, ("deleted for good", "deleted", "restored", "deleted"), strict=True):
        assert (note.action, note.changes) == (f"webhook {action}", {"name": "Orders"})

    async def too_late(*_: object) -> bool:
        return False

    other = await guarded(house)
    await webhooks.remove(house.gateway, OWNER, other)
    for name in ("restore", "purge"):
        monkeypatch.setattr(house.gateway.store.bin, name, too_late)
    for action in (bin.restore, bin.delete_for_good):
        with pytest.raises(Refused, match=r"^not_found: .*in the bin"):
            await action(house.gateway, OWNER, other)
