"""Changing secrets while calls come in, and changing the key that secrets are stored under."""

import asyncio
import hmac
from pathlib import Path
from secrets import token_bytes

import pytest

from postern.stores.secrets.vault import VaultError
from postern.usecases.access.idempotency import once
from postern.usecases.calls.respond import respond
from postern.usecases.operations import settings
from postern.usecases.webhooks import webhooks
from support.clock import HeldClock
from support.house import OWNER, House, a_house
from support.refusals import refused
from support.reply import HttpReply
from support.waiting import until

HOUR = 3600
OLD_KEY, NEW_KEY = "an old key of sixteen or more", "a new key of sixteen or more"
TOKEN = {"method": "token", "token": "old-old-old"}
SIGNED = {"method": "hmac", "provider": "github", "secret": "old-old-old"}


@pytest.mark.parametrize(("how", "second"), [(TOKEN, "secondToken"), (SIGNED, "secondSecret")])
async def test_a_rotation_under_load_loses_no_call(house: House, how: dict[str, str], second: str) -> None:
    unlimited = {"callsPerSecond": 100000, "burst": 100000}
    webhook = await house.webhook(authentication=how, rateLimit=unlimited)

    def headers(secret: str) -> dict[str, str]:
        if how is TOKEN:
            return {"X-Api-Key": secret}
        return {"X-Hub-Signature-256": f"sha256={hmac.digest(secret.encode(), b'{}', 'sha256').hex()}"}

    sends_with, over = "old-old-old", False
    replies: list[HttpReply] = []

    async def sender() -> None:
        while not over:
            replies.append(await house.call(webhook, b"{}", headers=headers(sends_with)))

    async def until_more_came_in() -> None:
        wanted = len(replies) + 40
        await until(lambda: len(replies) >= wanted)

    senders = [asyncio.create_task(sender()) for _ in range(8)]
    try:
        await until_more_came_in()
        await webhooks.change(house.gateway, OWNER, webhook.id, {"authentication": {second: "new-new-new"}})
        await until_more_came_in()
        sends_with = "new-new-new"
        await until_more_came_in()
        await webhooks.promote(house.gateway, OWNER, webhook.id, now=True)
        await until_more_came_in()
    finally:
        over = True
        await asyncio.gather(*senders)
    assert {one.status for one in replies} == {200}
    assert (await house.call(webhook, b"{}", headers=headers("old-old-old"))).status == 401


async def test_promoting_is_safe_only_when_the_main_secret_has_rested_for_an_hour(house: House) -> None:
    webhook = await house.webhook(authentication={"method": "token", "token": "old", "secondToken": "new"})
    clock = HeldClock(house.gateway)

    async def state() -> tuple[bool, bool]:
        """Whether it is said to be safe, and whether a time is told before which it is not."""
        rotation = (await webhooks.show(house.gateway, OWNER, webhook.id)).authentication.rotation
        return rotation.safe_to_promote, rotation.safe_from is not None

    async def promoting() -> str:
        refusal = await refused(webhooks.promote(house.gateway, OWNER, webhook.id))
        assert refusal.code == "conflict"
        return refusal.detail

    async def call(token: str) -> None:
        assert (await house.call(webhook, headers={"X-Api-Key": token})).status == 200

    assert await state() == (False, True)
    assert "main secret was used or set within the last hour" in await promoting()
    await call("old")
    await call("new")
    assert await state() == (False, True)
    clock.now += HOUR - 1
    assert await state() == (False, True)
    await call("old")
    clock.now += HOUR - 1
    assert await state() == (False, True)
    clock.now += 1
    assert await state() == (False, False)  # nobody has used the second one since
    assert "no call has used the second secret since" in await promoting()
    await call("new")
    assert await state() == (True, False)
    await webhooks.promote(house.gateway, OWNER, webhook.id)
    assert (await webhooks.show(house.gateway, OWNER, webhook.id)).authentication.rotation is None


async def create() -> tuple[int, list[tuple[str, str]], bytes]:
    """What a creation answers with: a new thing each time."""
    return 201, [], token_bytes(8)


async def test_the_key_of_stored_secrets_is_changed_without_losing_one(tmp_path: Path) -> None:
    async with a_house(tmp_path, POSTERN_SECRET_KEYS=OLD_KEY) as house:
        webhook = await house.webhook(authentication=TOKEN)
        made = await once(house.gateway, OWNER, "again", b"a request", create)
        slow = await house.webhook(name="Slow", synchronousResponse={"enabled": True})
        house.lets_callers_wait(slow)
        await house.call(slow)
        (trigger,) = house.engine.started.values()
    async with a_house(tmp_path, POSTERN_SECRET_KEYS=f"{NEW_KEY},{OLD_KEY}") as house:
        assert (await house.call(webhook, headers={"X-Api-Key": "old-old-old"})).status == 200
        assert await settings.rotate_key(house.gateway, OWNER) == 2
        assert await house.noted() == ("key rotated", "secrets", {"reencrypted": 2})
        assert (await refused(house.answer(trigger))).code == "gone"
        guessed = respond(house.gateway, trigger.invocation_id, "rt_guessed", status=200, headers={}, body={})
        assert (await refused(guessed)).code == "not_authenticated"
        assert await settings.rotate_key(house.gateway, OWNER) == 0
    async with a_house(tmp_path, POSTERN_SECRET_KEYS=NEW_KEY) as house:
        assert (await house.call(webhook, headers={"X-Api-Key": "old-old-old"})).status == 200
        assert await once(house.gateway, OWNER, "again", b"a request", create) == (made[0], True)
        refusal = await refused(once(house.gateway, OWNER, "again", b"another request", create))
        assert refusal.code == "idempotency_mismatch"
    with pytest.raises(VaultError, match="POSTERN_SECRET_KEYS"):
        async with a_house(tmp_path, POSTERN_SECRET_KEYS=OLD_KEY):
            pass
