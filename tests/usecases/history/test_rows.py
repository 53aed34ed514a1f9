"""What a row of a list says of a call."""

import pytest

from postern.usecases.history import rows
from support.house import OWNER, House

pytestmark = pytest.mark.anyio


async def test_the_event_stands_where_the_sender_writes_it(house: House) -> None:
    shop = await house.webhook(authentication={"method": "hmac", "provider": "slack", "secret": "a" * 32})
    await house.call(shop, b'{"event": {"type": "message"}, "type": "event_callback"}')
    await house.call(shop, b'{"command": "/order", "type": "other"}')
    ids = [one.id for one in await house.history()]
    found = await rows.contents(house.gateway, OWNER, ids)
    assert [found[one].event for one in ids] == ["/order", "message"]


async def test_an_event_that_is_no_text_is_shown_as_far_as_it_is(house: House) -> None:
    shop = await house.webhook(authentication={"method": "hmac", "provider": "github", "secret": "a" * 32})
    await house.call(shop, headers={"X-GitHub-Event": "pu\xffsh"})
    (one,) = await house.history()
    assert (await rows.contents(house.gateway, OWNER, [one.id]))[one.id].event == "pu\ufffdsh"


async def test_a_long_value_is_cut(house: House) -> None:
    webhook = await house.webhook(fieldMapping={"fieldOne": "n", "fieldTwo": "m"})
    await house.call(webhook, b'{"n": "%s", "m": "%s"}' % (b"x" * 80, b"y" * 81))
    (one,) = await house.history()
    assert (await rows.contents(house.gateway, OWNER, [one.id]))[one.id].values == ["x" * 80, "y" * 79 + "…"]


async def test_of_a_large_body_a_list_reads_nothing(house: House) -> None:
    shop = await house.webhook(authentication={"method": "hmac", "provider": "slack", "secret": "a" * 32})
    for size, event in ((16 * 1024, "message"), (16 * 1024 + 1, "")):
        await house.call(shop, b'{"event": {"type": "message"}}'.ljust(size))
        newest = (await house.history())[0].id
        assert (await rows.contents(house.gateway, OWNER, [newest]))[newest].event == event
