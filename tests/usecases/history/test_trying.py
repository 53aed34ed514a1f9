"""A key of duplicate protection, tried on the last calls before it is saved."""

import pytest

from postern.core.problems import Refused
from postern.usecases.history import trying
from postern.usecases.history.views import TriedKey
from support.house import OWNER, House

pytestmark = pytest.mark.anyio


async def test_a_key_is_looked_for_in_the_last_calls(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trying, "LAST", 3)
    webhook = await house.webhook()

    async def tried(key: str) -> TriedKey:
        return await trying.duplicate_key(house.gateway, OWNER, webhook.id, key)

    assert await tried("order.id") == TriedKey(calls=0, found=0, example=None, instead=None)
    await house.call(webhook, b"{}")  # is too long ago
    await house.call(webhook, b'{"order": {"id": 7}}', headers={"X-Event-ID": "evt_1"})
    await house.call(webhook, b'{"order": {"id": 8}}', headers={"X-Event-ID": "evt_2"})
    await house.call(webhook, b'{"order": {}}')
    assert await tried("body:order.id") == TriedKey(calls=3, found=2, example="8", instead=None)
    assert await tried("header:x-event-id") == TriedKey(calls=3, found=2, example="evt_2", instead=None)
    # Written as the other kind.
    assert (await tried("X-Event-ID")).instead == "header:X-Event-ID"
    assert (await tried("header:order")).instead == "order"
    assert await tried("nothing") == TriedKey(calls=3, found=0, example=None, instead=None)
    with pytest.raises(Refused) as refused:
        await tried("$.order.id")
    assert "without $" in refused.value.errors[0].message


async def test_of_a_large_body_nothing_is_said(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trying, "LARGEST_READ", 10)
    webhook = await house.webhook()
    await house.call(webhook, b'{"order": {"id": 7}}', headers={"X-Event-ID": "evt_1"})
    path = await trying.duplicate_key(house.gateway, OWNER, webhook.id, "order.id")
    header = await trying.duplicate_key(house.gateway, OWNER, webhook.id, "header:X-Event-ID")
    assert (path.calls, header.calls, header.found) == (0, 1, 1)
