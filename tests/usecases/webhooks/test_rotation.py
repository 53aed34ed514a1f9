"""Changing secrets while calls come in, and changing the key that secrets are stored under."""

import asyncio
import hashlib
import hmac
from pathlib import Path
from secrets import token_bytes

import pytest

from postern.core.problems import Refused
from postern.stores.secrets.vault import VaultError
from postern.usecases.access import audit
from postern.usecases.access.idempotency import once
from postern.usecases.calls.respond import respond
from postern.usecases.operations import settings
from postern.usecases.webhooks import webhooks
from support.house import OWNER, House, a_house
from support.reply import HttpReply
from support.waiting import PATIENCE

HOUR = 3600
OLD_KEY, NEW_KEY = "an old key of sixteen or more", "a new key of sixteen or more"
METHODS = {
    "token": (
        {"method": "token", "token": "old-old-old"},
        "secondToken",
        lambda secret: {"X-Api-Key": secret},
    ),
    "hmac": (
        {"method": "hmac", "provider": "github", "secret": "old-old-old"},
        "secondSecret",
        lambda secret: {
            "X-Hub-Signature-256": "sha256=" + hmac.new(secret.encode(), b"{}", hashlib.sha256).hexdigest()
        },
    ),
}


@pytest.mark.parametrize("method", METHODS)
async def test_a_rotation_under_load_loses_no_call(house: House, method: str) -> None:
    authentication, second, headers = METHODS[method]
    webhook = await house.webhook(
        authentication=authentication, rateLimit={"callsPerSecond": 100000, "burst": 100000}
    )
    sends_with, over = "old-old-old", False
    replies: list[HttpReply] = []

    async def sender() -> None:
        while not over:
            replies.append(await house.call(webhook, b"{}", headers=headers(sends_with)))

    async def until_more_came_in(by: int = 40) -> None:
        wanted = len(replies) + by
        async with asyncio.timeout(PATIENCE):
            while len(replies) < wanted:
                await asyncio.sleep(0)

    senders = [asyncio.create_task(sender()) for _ in range(8)]
    try:
        await until_more_came_in()
        await webhooks.change(house.gateway, OWNER, webhook.id, {"authentication": {second: "new-new-new"}})
        await until_more_came_in()
        sends_with = "new-new-new"
        await until_more_came_in()
        await webhooks.promote(house.gateway, OWNER, webhook.id)
        await until_more_came_in()
    finally:
        over = True
        await asyncio.gather(*senders)
    assert {one.status for one in replies} == {200}
    assert (await house.call(webhook, b"{}", headers=headers("old-old-old"))).status == 401


async def test_promoting_is_called_safe_only_when_the_main_secret_has_rested_for_an_hour(
    house: House,
) -> None:
    webhook = await house.webhook(authentication={"method": "token", "token": "old", "secondToken": "new"})
    began, later = house.gateway.clock(), 0.0
    house.gateway.clock = lambda: began + later

    async def state() -> tuple[bool, bool]:
        """Whether it is said to be safe, and whether a time is told before which it is not."""
        rotation = (await webhooks.show(house.gateway, OWNER, webhook.id)).authentication.rotation
        return rotation.safe_to_promote, rotation.safe_from is not None

    async def call(token: str) -> None:
        assert (await house.call(webhook, headers={"X-Api-Key": token})).status == 200

    assert await state() == (False, True)
    await call("old")
    await call("new")
    assert await state() == (False, True)
    later = HOUR - 1
    assert await state() == (False, True)
    await call("old")
    later += HOUR - 1
    assert await state() == (False, True)
    later += 1
    assert await state() == (False, False)  # nobody has used the second one since
    await call("new")
    assert await state() == (True, False)
    await webhooks.promote(house.gateway, OWNER, webhook.id)
    assert (await webhooks.show(house.gateway, OWNER, webhook.id)).authentication.rotation is None


async def create() -> tuple[int, list[tuple[str, str]], bytes]:
    """What a creation answers with: a new thing each time."""
    return 201, [], token_bytes(8)


async def test_the_key_of_stored_secrets_is_changed_without_losing_one(tmp_path: Path) -> None:
    async with a_house(tmp_path, POSTERN_SECRET_KEYS=OLD_KEY) as house:
        webhook = await house.webhook(authentication=METHODS["token"][0])
        made = await once(house.gateway, OWNER, "again", b"a request", create)
        slow = await house.webhook(name="Slow", synchronousResponse={"enabled": True})
        house.lets_callers_wait(slow)
        invocation = (await house.call(slow)).json["invocationId"]
        (trigger,) = house.engine.started.values()
        assert trigger.response is not None
    async with a_house(tmp_path, POSTERN_SECRET_KEYS=f"{NEW_KEY},{OLD_KEY}") as house:
        assert (await house.call(webhook, headers={"X-Api-Key": "old-old-old"})).status == 200
        assert await settings.rotate_key(house.gateway, OWNER) == 2
        note = (await audit.listing(house.gateway, OWNER)).items[0]
        assert (note.action, note.subject, note.changes) == ("key rotated", "secrets", {"reencrypted": 2})
        with pytest.raises(
            Refused
        ) as late:  # it is late, and known: a workflow that was started before is not a stranger now
            await respond(house.gateway, invocation, trigger.response.token, status=200, headers={}, body={})
        assert late.value.code == "gone"
        with pytest.raises(Refused) as stranger:
            await respond(house.gateway, invocation, "rt_guessed", status=200, headers={}, body={})
        assert stranger.value.code == "not_authenticated"
        assert await settings.rotate_key(house.gateway, OWNER) == 0
    async with a_house(tmp_path, POSTERN_SECRET_KEYS=NEW_KEY) as house:
        assert (await house.call(webhook, headers={"X-Api-Key": "old-old-old"})).status == 200
        assert await once(house.gateway, OWNER, "again", b"a request", create) == (made[0], True)
        with pytest.raises(Refused) as other:
            await once(house.gateway, OWNER, "again", b"another request", create)
        assert other.value.code == "idempotency_mismatch"
    with pytest.raises(VaultError, match="POSTERN_SECRET_KEYS"):
        async with a_house(tmp_path, POSTERN_SECRET_KEYS=OLD_KEY):
            pass
