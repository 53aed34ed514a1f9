"""A key of duplicate protection, tried on the last calls before it is saved."""

from postern.usecases.history.views.requests import TriedKey
from postern.usecases.webhooks import trying
from support.house import OWNER, House
from support.refusals import refused


async def test_a_key_is_looked_for_in_the_last_twenty_calls(house: House) -> None:
    webhook = await house.webhook()

    async def tried(key: str) -> TriedKey:
        return await trying.duplicate_key(house.gateway, OWNER, webhook.id, key)

    assert await tried("order.id") == TriedKey(calls=0, found=0, example=None, instead=None)
    await house.call(webhook, b'{"long": "ago"}')
    for _ in range(17):
        await house.call(webhook, b"{}")
    await house.call(webhook, b'{"order": {"id": 7}}', headers={"X-Event-ID": "evt_1"})
    await house.call(webhook, b'{"order": {"id": 8}}', headers={"X-Event-ID": "evt_2"})
    await house.call(webhook, b'{"order": {}}')
    assert await tried("body:order.id") == TriedKey(calls=20, found=2, example="8", instead=None)
    assert (await tried("long")).found == 0
    assert await tried("header:x-event-id") == TriedKey(calls=20, found=2, example="evt_2", instead=None)
    # Written as the other kind.
    assert (await tried("X-Event-ID")).instead == "header:X-Event-ID"
    assert (await tried("header:order")).instead == "order"
    assert await tried("nothing") == TriedKey(calls=20, found=0, example=None, instead=None)
    assert "without $" in (await refused(tried("$.order.id"))).errors[0].message


async def test_of_a_large_body_nothing_is_reported(house: House) -> None:
    webhook = await house.webhook()
    for size in (256 * 1024, 256 * 1024 + 1):
        await house.call(webhook, b'{"order": {"id": 7}}'.ljust(size), headers={"X-Event-ID": "evt_1"})
        path = await trying.duplicate_key(house.gateway, OWNER, webhook.id, "order.id")
        header = await trying.duplicate_key(house.gateway, OWNER, webhook.id, "header:X-Event-ID")
        assert (path.calls, path.found, header.calls - header.found) == (1, 1, 0)
    assert header.calls == 2


async def test_the_newest_call_is_the_example_and_a_long_one_is_cut(house: House) -> None:
    webhook = await house.webhook()
    for number in range(3):
        body = b'{"id": "%d%s"}' % (number, b"x" * 100)
        await house.call(webhook, body, headers={"X-Event-ID": f"evt_{number}"})
    path = await trying.duplicate_key(house.gateway, OWNER, webhook.id, "id")
    assert (path.calls, path.found, path.example) == (3, 3, "2" + "x" * 79)
    for key in ("header:X-Event-ID", "HEADER:x-event-id"):
        header = await trying.duplicate_key(house.gateway, OWNER, webhook.id, key)
        assert (header.found, header.example, header.instead) == (3, "evt_2", None)
