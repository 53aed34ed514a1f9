"""What a row of a list says of a call."""

from postern.usecases.webhooks import webhooks
from support.house import OWNER, House

SLACK = {"method": "hmac", "provider": "slack", "secret": "a" * 32}


async def test_the_event_stands_where_the_sender_writes_it(house: House) -> None:
    mapped = {"fieldOne": "event.type", "fieldTwo": "event.user"}
    shop = await house.webhook(authentication=SLACK, fieldMapping=mapped)
    event = b'{"event": {"type": "message", "user": "U1"}, "type": "event_callback"}'
    await house.call(shop, event)
    await house.call(shop, b'{"command": "/order", "type": "other"}')
    for size in (16 * 1024, 16 * 1024 + 1):  # of a large body nothing is read
        await house.call(shop, event.ljust(size))
    rows = await house.history()
    assert [one.event for one in rows] == ["", "message", "/order", "message"]
    assert rows[-1].other_values == ["U1"], "what is the event is shown once"
    assert {one.webhook_name for one in rows} == {shop.name}
    await webhooks.remove(house.gateway, OWNER, shop.id)
    assert {one.webhook_name for one in await house.history()} == {None}


async def test_a_long_value_is_cut(house: House) -> None:
    webhook = await house.webhook(fieldMapping={"fieldOne": "n", "fieldTwo": "m"})
    await house.call(webhook, b'{"n": "%s", "m": "%s"}' % (b"x" * 80, b"y" * 81))
    (one,) = await house.history()
    assert one.fields == {"fieldOne": "x" * 80, "fieldTwo": "y" * 79 + "…"}
