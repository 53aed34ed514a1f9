import pytest
from sqlalchemy import Connection, event

from duties.conftest import ACTOR, Desk
from postern.core.invocation import HistoryFilter
from postern.usecases import history

pytestmark = pytest.mark.anyio


async def test_one_invocations_replay_does_not_hide_the_others_from_a_status_filter(desk: Desk) -> None:
    webhook = await desk.webhook()
    plain, replayed = await desk.accepted(webhook, {"n": 1}), await desk.accepted(webhook, {"n": 2})
    await history.replay(desk.gateway, ACTOR, replayed)
    found = await history.listing(desk.gateway, ACTOR, HistoryFilter(status="accepted"))
    assert [one["id"] for one in found.items] == [replayed, plain]


@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("wanted", "index"),
    [
        (HistoryFilter(status="rejected"), "invocations_apart"),
        (HistoryFilter(status="duplicate", webhook_id="wh_1"), "invocations_apart_of_webhook"),
        (HistoryFilter(code="signature_mismatch", webhook_id="wh_1"), "invocations_apart_of_webhook"),
        (HistoryFilter(status="failed"), "deliveries_apart"),
    ],
)
async def test_filtering_for_the_few_costs_what_they_are(desk: Desk, wanted: HistoryFilter, index: str) -> None:
    plans: list[str] = []

    def explain(connection: Connection, cursor: object, statement: str, parameters: tuple[object, ...], *_: object) -> None:
        if "ORDER BY invocations.id DESC" in statement and not statement.startswith("EXPLAIN"):
            plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
            plans.extend(str(row[3]) for row in plan)

    event.listen(desk.store.database.readers, "before_cursor_execute", explain)
    await history.listing(desk.gateway, ACTOR, wanted)
    assert any(f"INDEX {index} " in step for step in plans), plans
    assert not any(step.startswith("SCAN") and "invocations_apart" not in step for step in plans), plans
