import pytest
from sqlalchemy import Connection, event

from postern.core.history.invocation import HistoryFilter
from postern.core.problems import Refused
from postern.identity import time_of
from postern.stores.history import reading
from postern.usecases.history import history
from support.desk import ACTOR, Desk

pytestmark = pytest.mark.anyio


async def test_one_invocations_replay_does_not_hide_the_others_from_a_status_filter(desk: Desk) -> None:
    webhook = await desk.webhook()
    plain, replayed = await desk.accepted(webhook, {"n": 1}), await desk.accepted(webhook, {"n": 2})
    await history.replay(desk.gateway, ACTOR, replayed)
    found = await history.listing(desk.gateway, ACTOR, HistoryFilter(status="accepted"))
    assert [one.id for one in found.items] == [replayed, plain]


@pytest.mark.parametrize(
    ("asked", "wrong"),
    [
        ({"status": "lost"}, ["filter.status"]),
        ({"since": "yesterday", "until": "1e3"}, ["filter.since", "filter.until"]),
        (
            {"search": "a\0b", "webhook_id": "\ud800", "code": "\0", "status": "-"},
            ["filter.webhookId", "filter.code", "filter.search", "filter.status"],
        ),
    ],
)
def test_what_is_wrong_in_a_filter_is_named_all_at_once(asked: dict[str, str], wrong: list[str]) -> None:
    with pytest.raises(Refused) as refused:
        history.filter_of(**asked, within="filter.")
    assert [error.field for error in refused.value.errors] == wrong


def test_a_filter_of_empty_texts_asks_for_nothing() -> None:
    assert (
        history.filter_of(webhook_id="", status="", code="", since="", until="", search="") == HistoryFilter()
    )
    assert history.filter_of(status="held", since="0", until="1970-01-01T00:01:00Z") == HistoryFilter(
        None, "held", None, 0.0, 60.0
    )


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
async def test_filtering_for_the_few_costs_what_they_are(
    desk: Desk, wanted: HistoryFilter, index: str
) -> None:
    plans: list[str] = []

    def explain(
        connection: Connection, cursor: object, statement: str, parameters: tuple[object, ...], *_: object
    ) -> None:
        if "ORDER BY invocations.id DESC" in statement and not statement.startswith("EXPLAIN"):
            plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
            plans.extend(str(row[3]) for row in plan)

    event.listen(desk.store.database.readers, "before_cursor_execute", explain)
    await history.listing(desk.gateway, ACTOR, wanted)
    assert any(f"INDEX {index} " in step for step in plans), plans
    assert not any(step.startswith("SCAN") and "invocations_apart" not in step for step in plans), plans


async def test_calls_are_counted_as_far_as_that_is_cheap(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    webhook = await desk.webhook()
    ids = [await desk.accepted(webhook, {"n": number}) for number in range(5)]
    count = await history.count(desk.gateway, ACTOR, HistoryFilter(webhook_id=webhook))
    assert (count.calls, count.or_more, count.looked_back_to) == (5, False, None)
    monkeypatch.setattr(reading, "MOST_COUNTED", 4)
    count = await history.count(desk.gateway, ACTOR, HistoryFilter())
    assert (count.calls, count.or_more, count.looked_back_to) == (4, True, None)
    monkeypatch.setattr(reading, "LONGEST_LOOK", 3)
    count = await history.count(desk.gateway, ACTOR, HistoryFilter(search="4"))
    assert (count.calls, count.or_more) == (1, True)
    assert count.looked_back_to == time_of(ids[2]), "where no index helps, the newest alone"
