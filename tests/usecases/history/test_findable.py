"""A call is found by its mapped values, its event's name and its address, in a history of any length."""

from sqlalchemy import select

from postern.core.deliveries.delivery import Started
from postern.core.history.invocation import HistoryFilter
from postern.identity import time_of
from postern.stores.sql.tables import call_values
from postern.usecases.history import findable, history
from postern.usecases.operations.retention import prune
from postern.usecases.webhooks import webhooks
from support.clock import HeldClock, later
from support.desk import ACTOR, Desk, on_both
from support.house import OWNER, House

FIELDS = {"fieldOne": "order", "fieldTwo": "email"}


async def all_findable(of: House | Desk) -> None:
    later(of.gateway, findable.SETTLED + 1)
    while await findable.step(of.gateway):
        pass


async def test_a_value_an_event_and_an_address_lead_to_their_calls(house: House) -> None:
    webhook = await house.webhook(fieldMapping=FIELDS)
    first = await house.recorded(webhook, b'{"order":"A-1","email":"Ada@Example.com"}', peer="192.0.2.1")
    paid = {"X-Event-Type": "order.paid"}
    second = await house.recorded(webhook, b'{"order":"A-2"}', peer="192.0.2.2", headers=paid)
    await all_findable(house)
    assert await house.found(value="a-1") == [first]
    assert await house.found(value=" ada@example.com") == [first]
    assert await house.found(value="order.paid") == [second]
    assert await house.found(address="192.0.2.2") == [second]
    assert await house.found(value="A-1", address="192.0.2.2") == []
    assert await house.found(value="A-") == [], "a whole value"
    assert await house.found(value=first) == [first]
    assert await house.found(value="A-2", status="rejected") == []
    await webhooks.remove(house.gateway, OWNER, webhook.id)
    assert await house.found(value="A-1") == [first]


async def test_a_rejected_call_is_found_by_its_values_too(house: House) -> None:
    """And shows them; none are read from a large body, nor from one that is no object."""
    shop = await house.webhook(
        fieldMapping=FIELDS, authentication={"method": "hmac", "provider": "github", "secret": "a" * 32}
    )
    bodies = (
        b'{"order":"R-1"}',
        b"R-1",
        b'["R-1"]',
        b'{"order":"R-1"}'.ljust(16 * 1024 + 1),
        b'{"order":{"order":"R-1"}}',
    )
    for body in bodies:
        assert (await house.call(shop, body)).status == 401
    (rejected,) = [one.id for one in await house.history() if one.body_size == len(bodies[0])]
    await all_findable(house)
    assert await house.found(value="r-1") == await house.found(value="R-*", status="rejected") == [rejected]
    shown = {one.id: one.fields for one in await house.history() if one.fields}
    assert shown.pop(rejected) == {"fieldOne": "R-1"}
    assert list(shown.values()) == [{"fieldOne": '{"order":"R-1"}'}]
    await webhooks.remove(house.gateway, OWNER, shop.id)
    assert await house.found(value="R-1") == [rejected]


@on_both
async def test_both_databases_find_a_value_of_one_webhook(desk: Desk) -> None:
    webhook, other = [await desk.webhook(fieldMapping={"fieldOne": "n"}) for _ in range(2)]
    ids = [await desk.accepted(one, {"n": "Ünïcode\x00 7"}) for one in (webhook, other, webhook)]
    await all_findable(desk)
    for wanted in (
        HistoryFilter(webhook, value="ünïcode\x00 7"),
        HistoryFilter(webhook, value="ünïcode\x00 7", status="accepted"),
    ):
        page = await history.listing(desk.gateway, ACTOR, wanted, 1)
        more = await history.listing(desk.gateway, ACTOR, wanted, 1, page.next_cursor)
        assert [page.items[0].id, more.items[0].id] == [ids[2], ids[0]]


async def test_two_processes_keep_each_call_once(house: House) -> None:
    webhook = await house.webhook(fieldMapping=FIELDS)
    await house.call(webhook, b'{"order":"once"}')
    later(house.gateway, findable.SETTLED + 1)
    after = await house.gateway.store.chores.reached("findable")
    assert await findable.step(house.gateway) == 1
    assert not await house.gateway.store.findable.keep({"inv_0": {b"vx"}}, after, 0.0)


@on_both
async def test_what_retention_takes_is_not_found_any_more(desk: Desk) -> None:
    webhook = await desk.webhook(historyRetentionDays=1, fieldMapping={"fieldOne": "n"})
    await desk.accepted(webhook, {"n": "seven"})
    later(desk.gateway, 10)
    assert await findable.step(desk.gateway) == 1
    assert len(await desk.rows(select(call_values.c.value))) == 2
    for delivery in await desk.store.deliveries.claim(desk.gateway.clock() + 1, 30, 10):
        await desk.store.deliveries.started(delivery, Started(1), desk.gateway.clock())
    later(desk.gateway, 3 * 86_400)
    assert (await prune(desk.gateway, ACTOR))["invocations"] == 1
    assert await desk.rows(select(call_values.c.value)) == []


async def test_a_call_is_made_findable_when_no_earlier_one_can_still_be_stored(house: House) -> None:
    """And where that takes longer than ever, it is told since when."""
    assert await findable.behind(house.gateway, OWNER) is None
    call = await house.recorded(await house.webhook(fieldMapping=FIELDS), b'{"order":"A-1"}')
    came = time_of(call)
    HeldClock(house.gateway, came + 4.9)
    assert await findable.step(house.gateway) == 0
    for seconds, since in ((9.9, None), (10.1, came)):
        HeldClock(house.gateway, came + seconds)
        assert await findable.behind(house.gateway, OWNER) == since
    HeldClock(house.gateway, came + 5.1)
    assert await findable.step(house.gateway) == 1
    HeldClock(house.gateway, came + 10.1)
    assert await findable.behind(house.gateway, OWNER) is None
    assert await house.found(value="A-1") == [call]
