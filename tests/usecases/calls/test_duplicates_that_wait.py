"""A sender that sends a call again while its first one still waits for the workflow."""

import asyncio

from postern.usecases.calls.respond import respond
from postern.usecases.deliveries import holds
from postern.usecases.webhooks import webhooks
from support.house import OWNER, House
from support.waiting import PATIENCE

PROTECTED = {"duplicateProtection": {"enabled": True}}


async def test_a_duplicate_hears_what_the_first_call_hears_while_it_waits_and_afterwards(
    house: House,
) -> None:
    webhook = await house.webhook(synchronousResponse={"enabled": True, "timeoutSeconds": 25}, **PROTECTED)
    async with asyncio.timeout(PATIENCE):
        first = asyncio.create_task(house.call(webhook, b'{"n": 1}'))
        await house.begun()
        again = asyncio.create_task(house.call(webhook, b'{"n": 1}'))
        while sum(map(len, house.gateway.runtime.waiters._events.values())) < 2:
            await asyncio.sleep(0.01)
        assert not again.done()
        (trigger,) = house.engine.started.values()
        assert trigger.response is not None
        await respond(
            house.gateway, trigger.invocation_id, trigger.response.token, status=201, headers={}, body="made"
        )
        heard = [await first, await again, await house.call(webhook, b'{"n": 1}')]
    assert [(one.status, one.body) for one in heard] == [(201, b"made")] * 3
    assert sum(house.engine.times.values()) == 1


async def test_a_duplicate_waits_no_longer_than_its_webhook_now_says(house: House) -> None:
    webhook = await house.webhook(synchronousResponse={"enabled": True, "timeoutSeconds": 25}, **PROTECTED)
    first = asyncio.create_task(house.call(webhook, b'{"n": 1}'))
    async with asyncio.timeout(PATIENCE):
        await house.begun()
        await webhooks.change(
            house.gateway, OWNER, webhook.id, {"synchronousResponse": {"timeoutSeconds": 1}}
        )
        now = house.gateway.runtime.directory.by_id(webhook.id)
        assert now is not None and now.answer_timeout == 1
        house.lets_callers_wait(webhook)
        house.gateway.runtime.waiters.look_every = 0.01
        again = await house.call(webhook, b'{"n": 1}')
        assert (again.status, again.json["code"], first.done()) == (504, "response_timeout", False)
        # When the gateway is told to stop, everybody hears how it stands.
        await webhooks.change(
            house.gateway, OWNER, webhook.id, {"synchronousResponse": {"timeoutSeconds": 25}}
        )
        another = asyncio.create_task(house.call(webhook, b'{"n": 1}'))
        while sum(map(len, house.gateway.runtime.waiters._events.values())) < 2:
            await asyncio.sleep(0.01)
        house.gateway.runtime.waiters.send_away()
        assert {(await first).status, (await another).status} == {504}


async def test_callers_of_a_webhook_on_hold_and_duplicates_of_such_a_call_are_answered_at_once(
    house: House,
) -> None:
    webhook = await house.webhook(synchronousResponse={"enabled": True, "timeoutSeconds": 25}, **PROTECTED)
    await holds.hold(house.gateway, OWNER, webhook.id)
    async with asyncio.timeout(PATIENCE):
        first = await house.call(webhook, b'{"n": 1}')
    assert (first.status, first.json["status"]) == (200, "accepted")
    await holds.release(house.gateway, OWNER, webhook.id)
    async with asyncio.timeout(PATIENCE):
        again = await house.call(webhook, b'{"n": 1}')
    assert (again.status, again.json) == (
        200,
        {"status": "duplicate", "invocationId": first.json["invocationId"]},
    )
