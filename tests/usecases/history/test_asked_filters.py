"""What somebody asks for on a surface becomes a filter, or is refused by the name of the field that is wrong."""

from datetime import UTC, datetime

import pytest

from postern.core.history.invocation import STATUSES, HistoryFilter
from postern.core.problems import Refused
from postern.usecases.history.filters import filter_of
from support.refusals import fields_of


def wrong(within: str = "", **asked: str) -> list[str]:
    with pytest.raises(Refused) as caught:
        filter_of(within=within, **asked)  # type: ignore[arg-type]
    return list(fields_of(caught.value))


def test_what_is_asked_is_in_the_filter_and_nothing_asks_for_nothing() -> None:
    asked = {
        "webhook_id": "wh_1",
        "status": "failed",
        "code": "accepted",
        "search": "text",
        "answer": "5xx",
        "value": "1001",
        "address": "192.0.2.1",
        "header": "x-event=paid",
        "field": "order.number=1",
    }
    for given in (asked, dict.fromkeys(asked, ""), {}):
        found = filter_of(**given)  # type: ignore[arg-type]
        assert {name: getattr(found, name) or "" for name in asked} == {
            name: given.get(name, "") for name in asked
        }
    assert filter_of() == filter_of(**dict.fromkeys(asked, "")) == HistoryFilter()  # type: ignore[arg-type]
    assert filter_of(bookmarked=True).bookmarked


@pytest.mark.parametrize("name", ["webhook_id", "code", "search", "value", "header", "field"])
@pytest.mark.parametrize("character", ["\0", "\ud800", "\udfff"])
def test_what_no_stored_text_holds_is_not_asked_for(name: str, character: str) -> None:
    public = {"webhook_id": "webhookId"}.get(name, name)
    assert public in wrong(**{name: f"x{character}"})
    assert f"filter.{public}" in wrong("filter.", **{name: f"x{character}"})


@pytest.mark.parametrize("header", ["x event", "=1", "x:1", "é=1"])
def test_a_header_is_asked_for_by_a_name_that_one_can_have(header: str) -> None:
    assert wrong(header=header) == ["header"]
    assert wrong("filter.", header=header) == ["filter.header"]
    assert filter_of(header="X-Event!#$%&'*+.^_`|~-0 = a b").header


def test_a_field_is_asked_for_by_a_path() -> None:
    assert wrong(field="a..b") == ["field"]
    assert wrong("filter.", field="[") == ["filter.field"]
    assert filter_of(field="order.items[0].sku=a b").field


@pytest.mark.parametrize("answer", ["600", "0xx", "2x", "20", "2000", "gone ", "x", "99"])
def test_an_answer_is_a_status_a_kind_or_that_nobody_was_there(answer: str) -> None:
    assert wrong(answer=answer) == ["answer"]
    for right in ("100", "504", "5xx", "gone"):
        assert filter_of(answer=right).answer == right


def test_a_status_is_one_of_those_that_there_are() -> None:
    assert wrong("filter.", status="gone") == ["filter.status"]
    for status in STATUSES:
        assert filter_of(status=status).status == status


def test_a_time_that_is_none_is_refused_by_its_name() -> None:
    found = filter_of(since="2026-01-02T03:04:05+02:00", until="1767323045.5")
    assert (found.since, found.until) == (datetime(2026, 1, 2, 1, 4, 5, tzinfo=UTC).timestamp(), 1767323045.5)
    assert wrong(since="yesterday") == ["since"]
    assert wrong("filter.", until="-1") == ["filter.until"]


def test_all_that_is_wrong_is_reported_at_once() -> None:
    assert wrong(status="gone", answer="x", since="x", header="=") == ["header", "status", "answer", "since"]
