"""What a row of a list says of a call."""

from postern.usecases.webhooks import webhooks
from support.house import OWNER, House

SLACK = {"method": "hmac", "provider": "slack", "secret": "a" * 32}


async def test_the_event_stands_where_the_sender_writes_it(house: House) -> None:
    shop = await house.webhook(authentication=SLACK)
    await house.call(shop, b'{"event": {"type": "message"}, "type": "event_callback"}')
    await house.call(shop, b'{"command": "/order", "type": "other"}')
    assert [one.event for one in await house.history()] == ["/order", "message"]
    assert {one.webhook_name for one in await house.history()} == {shop.name}
    await webhooks.remove(house.gateway, OWNER, shop.id)
    assert {one.webhook_name for one in await house.history()} == {None}


async def test_a_value_that_is_the_event_is_shown_once(house: House) -> None:
    shop = await house.webhook(
        authentication=SLACK, fieldMapping={"fieldOne": "event.type", "fieldTwo": "event.user"}
    )
    await house.call(shop, b'{"event": {"type": "message", "user": "U1"}}')
    (one,) = await house.history()
    assert (one.event, one.other_values) == ("message", ["U1"])


async def test_a_long_value_is_cut(house: House) -> None:
    webhook = await house.webhook(fieldMapping={"fieldOne": "n", "fieldTwo": "m"})
    await house.call(webhook, b'{"n": "%s", "m": "%s"}' % (b"x" * 80, b"y" * 81))
    (one,) = await house.history()
    assert one.fields == {"fieldOne": "x" * 80, "fieldTwo": "y" * 79 + "…"}


async def test_of_a_large_body_a_list_reads_nothing(house: House) -> None:
    shop = await house.webhook(authentication=SLACK)
    for size, event in ((16 * 1024, "message"), (16 * 1024 + 1, "")):
        await house.call(shop, b'{"event": {"type": "message"}}'.ljust(size))
        assert (await house.history())[0].event == event
