"""A database of the first version is opened by this one: every webhook is served as it was, all of the history is
there."""

import asyncio
import base64
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from postern.core.answer import workflow_response
from postern.usecases.access import accounts
from postern.usecases.answers import as_plain
from postern.usecases.deliveries import replays
from postern.usecases.history import history
from postern.usecases.webhooks import listing, webhooks
from support.first_version import expected, unpack_database
from support.house import OWNER, House, NotingEngine, a_house

pytestmark = pytest.mark.anyio

THEN = expected()


class AnsweringEngine(NotingEngine):
    async def ended(self, key: str) -> Any:
        return workflow_response(200, {}, {"paid": 2})


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    unpack_database(tmp_path / "data")
    async with a_house(tmp_path, POSTERN_SECRET_KEYS=THEN["secretKey"]) as house:
        house.engine = house.gateway.engine = AnsweringEngine()
        yield house


def differences(then: Any, now: Any, place: str = "") -> list[str]:
    """Where it is not told any more as it was. What is told in addition is no difference."""
    if isinstance(then, dict) and isinstance(now, dict):
        return [
            found
            for name, value in then.items()
            for found in differences(value, now.get(name, "not told"), f"{place}.{name}")
        ]
    if isinstance(then, list) and isinstance(now, list) and len(then) == len(now):
        pairs = zip(then, now, strict=True)
        return [
            found for index, pair in enumerate(pairs) for found in differences(*pair, f"{place}[{index}]")
        ]
    return [] if then == now else [f"{place}: {then!r} is now {now!r}"]


async def test_every_webhook_is_served_and_shown_as_it_was(house: House) -> None:
    for then in THEN["webhooks"]:
        assert house.gateway.runtime.directory.by_id(then["id"]) is not None, then["name"]
        rotation = then["authentication"].get("rotation") or {}
        rotation.pop("safeFrom", None)  # is over an hour after
        shown = as_plain(await webhooks.show(house.gateway, OWNER, then["id"]))
        # Later versions warn of more.
        warnings = {text.replace("refused", "rejected") for text in then.pop("warnings")}
        assert warnings <= set(shown["warnings"])
        assert differences(then, shown) == []
    listed = await listing.listing(house.gateway, OWNER, 200)
    assert [one.id for one in listed.items] == [one["id"] for one in THEN["webhooks"]]


CORRECTED = {base64.b64encode(b"[1, 2").decode(): "malformed_json"}
"""Codes of today that are others: what begins like a list was called JSON, although the rest of it was not read."""


async def test_every_call_is_judged_as_it_was(house: House) -> None:
    for then in THEN["calls"]:
        house.gateway.clock = lambda at=then["at"]: at  # type: ignore[misc]
        reply = await asyncio.wait_for(
            house.call(
                SimpleNamespace(url=then["url"]),
                base64.b64decode(then["body"]),
                **{name: then[name] for name in ("headers", "method", "query", "peer")},
            ),
            20,
        )
        code = reply.json.get("code") if reply.status >= 400 else None
        expected = CORRECTED.get(then["body"], then["code"]) if then["status"] >= 400 else None
        assert (reply.status, code) == (then["status"], expected), then


async def test_all_of_the_history_is_there(house: House) -> None:
    assert [one.id for one in await house.history()] == [one["id"] for one in THEN["invocations"]]
    for then in THEN["invocations"]:
        assert differences(then, as_plain(await history.show(house.gateway, OWNER, then["id"]))) == []
    assert {one.state for one in (await replays.listing(house.gateway, OWNER)).items} == {
        "planned",
        "completed",
    }


async def test_what_was_accepted_then_can_be_replayed_now(house: House) -> None:
    replayable = [one["id"] for one in THEN["invocations"] if one["code"] == "accepted"]
    for invocation in replayable[:: len(replayable) - 1]:
        await history.replay(house.gateway, OWNER, invocation)
    await house.deliver()
    assert len(house.engine.started) >= 2


async def test_whoever_had_access_has_it(house: House) -> None:
    actor = await accounts.actor_of_key(house.gateway, THEN["apiKey"])
    assert (actor.name, actor.level) == ("monitoring", "read")
    assert await accounts.sign_in(
        house.gateway, "admin", "a password for the fixture", "127.0.0.1", "a browser"
    )
