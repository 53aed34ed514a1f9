"""What an engine tells of its runs, and one that tells nothing."""

from typing import Any

import pytest

from postern.core.problems import Refused
from postern.usecases.operations import engine, example
from support.house import OWNER, House

pytestmark = pytest.mark.anyio


async def test_an_engine_that_lists_its_runs_is_asked(house: House) -> None:
    assert await engine.runs(house.gateway, OWNER) == []


async def test_an_engine_that_cannot_list_them_is_told_as_a_conflict(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nothing(*_: Any) -> None:
        return None

    monkeypatch.setattr(house.engine, "runs", nothing)
    for one in (house.engine, None):
        house.gateway.engine = one
        with pytest.raises(Refused) as refused:
            await engine.runs(house.gateway, OWNER)
        assert refused.value.code == "conflict"


async def test_the_examples_workflow_hears_its_own_webhook_or_nobody(house: House) -> None:
    found = await example.example_environment(house.gateway)
    assert found["ORDER_LOOKUP_WEBHOOK_ID"].startswith("wh_")
    assert await example.example_environment(house.gateway) == found


async def test_where_there_are_other_webhooks_the_example_hears_nobody(house: House) -> None:
    await house.webhook()
    assert await example.example_environment(house.gateway) == {"ORDER_LOOKUP_WEBHOOK_ID": "none"}
