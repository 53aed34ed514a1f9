"""A caller waits at one gateway, and the workflow's answer comes in at another one on the same database."""

import asyncio
from pathlib import Path

from postern.core.deliveries.delivery import Trigger
from postern.usecases.calls.respond import respond
from postern.usecases.runtime import notifications
from support.house import a_house
from support.waiting import PATIENCE


async def test_the_caller_is_woken_and_need_not_look(tmp_path: Path, migrated_url: str) -> None:
    shared = {"POSTERN_DATABASE_URL": migrated_url, "POSTERN_SECRET_KEYS": "a-key-of-both-long-enough"}
    async with a_house(tmp_path / "1", **shared) as here, a_house(tmp_path / "2", **shared) as there:
        waiters = here.gateway.runtime.waiters
        following = asyncio.create_task(notifications.follow(here.gateway))
        async with asyncio.timeout(PATIENCE):
            while waiters.look_every != notifications.RARELY:
                await asyncio.sleep(0.01)
            webhook = await here.webhook(synchronousResponse={"enabled": True})
            compiled = here.gateway.runtime.directory.by_id(webhook.id)
            assert compiled is not None
            compiled.answer_timeout = waiters.look_every = 3600.0
            calling = asyncio.create_task(here.call(webhook))
            while not here.engine.started:  # it waits before it starts the workflow
                await asyncio.sleep(0.01)
            (trigger,) = here.engine.started.values()
            await respond(
                there.gateway,
                trigger.invocation_id,
                token_of(trigger),
                status=201,
                headers={},
                body="from there",
            )
            heard = await calling
        assert (heard.status, heard.body) == (201, b"from there")
        following.cancel()


def token_of(trigger: Trigger) -> str:
    assert trigger.response is not None
    return trigger.response.token
