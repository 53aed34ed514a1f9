"""What an engine tells of its runs, and one that tells nothing."""

import asyncio
import shlex
from typing import Any

import pytest

from postern.core.deliveries.delivery import EngineHealth, EngineUnavailable, Run, RunStep, Workflow
from postern.usecases import stored_webhook
from postern.usecases.access import audit
from postern.usecases.answers import as_plain
from postern.usecases.operations import engine, example
from postern.usecases.runtime.gateway import WorkflowFiles
from postern.usecases.webhooks import webhooks
from support.house import OWNER, House, NotingEngine
from support.refusals import refused


async def test_an_engine_that_cannot_list_them_is_reported_as_a_conflict(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nothing(*_: Any) -> None:
        return None

    monkeypatch.setattr(house.engine, "runs", nothing)
    for one in (house.engine, None):
        house.gateway.engine = one
        assert (await refused(engine.runs(house.gateway, OWNER))).code == "conflict"


async def test_where_there_are_other_webhooks_the_example_hears_nobody(house: House) -> None:
    await house.webhook()
    assert await example.example_environment(house.gateway) == {"ORDER_LOOKUP_WEBHOOK_ID": "none"}


class Telling(NotingEngine):
    """An engine that tells what it is asked, or is away."""

    name = "telling"

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[int, str | None]] = []

    async def runs(self, limit: int = 50, delivery_key: str | None = None) -> list[Run]:
        self.asked.append((limit, delivery_key))
        if self.down:
            raise EngineUnavailable("nobody answered")
        steps = RunStep("one", 0.25), RunStep("two", error="lost")
        return [
            Run("r1", "orders", "failed", "inv_1.1", 1.0, 2.0, "it broke", steps),
            Run("r2", "orders", "running", "inv_2.1", 3.0),
        ]

    async def workflows(self) -> list[Workflow]:
        if self.down:
            raise EngineUnavailable("nobody answered")
        return [Workflow("orders", ("wh_1",), "Looks orders up.", "orders.py:7")]


async def test_what_an_engine_tells_is_answered_as_it_is(house: House) -> None:
    telling = house.gateway.engine = Telling()
    found = await engine.runs(house.gateway, OWNER, delivery_key="inv_1.1")
    assert as_plain(found) == [
        {
            "id": "r1",
            "workflow": "orders",
            "state": "failed",
            "deliveryKey": "inv_1.1",
            "startedAt": "1970-01-01T00:00:01.000Z",
            "endedAt": "1970-01-01T00:00:02.000Z",
            "error": "it broke",
            "steps": [
                {"name": "one", "seconds": 0.25, "error": None},
                {"name": "two", "seconds": None, "error": "lost"},
            ],
        },
        {
            "id": "r2",
            "workflow": "orders",
            "state": "running",
            "deliveryKey": "inv_2.1",
            "startedAt": "1970-01-01T00:00:03.000Z",
            "endedAt": None,
            "error": None,
            "steps": [],
        },
    ]
    assert as_plain(await engine.workflows(house.gateway, OWNER)) == {
        "items": [
            {"name": "orders", "webhookIds": ["wh_1"], "help": "Looks orders up.", "source": "orders.py:7"}
        ],
        "nextCursor": None,
        "problems": ["orders.py:7: orders wants calls of wh_1, which is no webhook here"],
    }
    for limit in (-1, 0, 1, 200, 201):
        await engine.runs(house.gateway, OWNER, limit)
    assert telling.asked == [(50, "inv_1.1"), (1, None), (1, None), (1, None), (200, None), (200, None)]
    state = await engine.state(house.gateway, OWNER)
    assert (state.name, state.health) == ("telling", EngineHealth(True, "noting"))


async def test_an_engine_that_is_away_is_reported_with_its_reason(house: House) -> None:
    telling = house.gateway.engine = Telling()
    telling.down = True
    for asked in (engine.runs(house.gateway, OWNER), engine.workflows(house.gateway, OWNER)):
        refusal = await refused(asked)
        assert (refusal.code, refusal.detail) == ("engine_unavailable", "nobody answered")


async def test_a_process_without_an_engine_knows_the_workflows_of_its_files(house: House) -> None:
    house.gateway.engine = None
    state = await engine.state(house.gateway, OWNER)
    assert (state.name, state.health) == ("none", None)

    async def known() -> tuple[list[Workflow], list[str]]:
        return [Workflow("orders", ())], ["b.py, line 3: no such thing"]

    house.gateway.workflow_files.known = known
    found = await engine.workflows(house.gateway, OWNER)
    assert [one.name for one in found.items] == ["orders"]
    assert found.problems == ["b.py, line 3: no such thing"]
    house.gateway.workflow_files = WorkflowFiles()
    assert (await refused(engine.workflows(house.gateway, OWNER))).code == "conflict"


async def test_a_workflow_that_wants_the_calls_of_no_webhook_is_pointed_out(house: House) -> None:
    webhook = await house.webhook(name="Discount")
    house.gateway.engine = None
    wanted = ("wh_…", "Discount", webhook.id, "")

    async def known() -> tuple[list[Workflow], list[str]]:
        return [Workflow("payment", (one,) if one else ()) for one in wanted], []

    house.gateway.workflow_files.known = known
    assert (await engine.workflows(house.gateway, OWNER)).problems == [
        "payment wants calls of wh_…, which is no webhook here",
        f"payment wants calls of Discount, which is no webhook here: did you mean {webhook.id}?",
    ]


# --- the example -----------------------------------------------------------------------------------------------------


async def test_the_example_is_a_command_that_works(house: House) -> None:
    command = await example.example_curl(house.gateway)
    assert command is not None
    (listed,) = house.gateway.runtime.directory.listed()
    made = await webhooks.show(house.gateway, OWNER, listed.id)
    assert (made.name, made.field_mapping.field_one) == ("Example: order look-up", "orderNumber")
    assert made.synchronous_response.enabled
    name, url, *options = shlex.split(command.replace("\\\n", " "))
    assert (name, url, options[::2]) == ("curl", made.url, ["-H", "-H", "-d"])
    headers = dict(option.split(": ", 1) for option in options[1:4:2])
    assert headers["Content-Type"] == "application/json"
    asked = stored_webhook.stored(house.gateway, made.id)
    assert headers["X-Api-Key"].encode() == (await asked).secrets["main"].value
    assert options[-1] == '{"orderNumber": "1001"}'
    calling = asyncio.create_task(
        house.call(made, options[-1].encode(), headers={"X-Api-Key": headers["X-Api-Key"]})
    )
    assert (await house.begun()).fields == {"fieldOne": "1001"}
    calling.cancel()
    note = (await audit.listing(house.gateway, OWNER)).items[0]
    assert (note.actor, note.action) == ("first start", "webhook created")


async def test_there_is_no_command_for_an_example_that_is_not_as_it_was_made(house: House) -> None:
    found = await example.example_environment(house.gateway)
    assert await example.example_curl(house.gateway) is not None
    (listed,) = house.gateway.runtime.directory.listed()
    assert found == await example.example_environment(house.gateway) == {"ORDER_LOOKUP_WEBHOOK_ID": listed.id}
    for other in ({"placement": "bearer"}, {"method": "none"}):
        await webhooks.change(house.gateway, OWNER, listed.id, {"authentication": other})
        assert await example.example_curl(house.gateway) is None
    newer = await house.webhook(name=example.NAME)
    found = await example.example_environment(house.gateway)
    assert found == {"ORDER_LOOKUP_WEBHOOK_ID": newer.id}, "of two of its name the newer one"
    for one in (newer.id, listed.id):
        await webhooks.change(house.gateway, OWNER, one, {"name": "Mine"})
    assert await example.example_curl(house.gateway) is None
    assert len(house.gateway.runtime.directory.listed()) == 2, "none is made where there are others"
